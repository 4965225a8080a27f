#!/usr/bin/env perl
# One session through agentcell-worker; prints events on stderr, and the answer.
#
#     one.pl ["MESSAGE" [PROJECT_DIR]]
#
# This program holds the worker's stdin open, and `lifeline` makes that count: when the program ends, even by
# kill -9, the worker sees the end of its stdin and ends the session.
use strict;
use warnings;
use Encode qw(decode_utf8);
use IPC::Open2 qw(open2);
use JSON::PP qw(decode_json encode_json);

binmode $_, ':encoding(UTF-8)' for *STDOUT, *STDERR;
my ($message, $project) = map { decode_utf8($_) } @ARGV;

local $SIG{PIPE} = 'IGNORE';    # a worker that is gone gives no result, which is seen below
my $worker  = open2(my $from, my $to, 'agentcell-worker');
my %request = (
    session_name     => 'one',
    agent_type       => 'coder',
    project_dir      => $project // '.',
    starting_message => $message // 'Look around and say hello.',
    events           => 'summary',
    lifeline         => JSON::PP::true,
);
print {$to} encode_json(\%request), "\n";    # open2 has it flushed; $to stays open: see above

my $result;
while (my $line = <$from>) {
    my $heard = decode_json($line);
    if   ($heard->{type} eq 'result') { $result = $heard }
    else                              { print STDERR "$heard->{type}\n" }
}
waitpid $worker, 0;
my ($code, $signal) = ($? >> 8, $? & 127);

die "agentcell-worker ended without a result: code $code, signal $signal\n" unless $result;
if   ($result->{error}) { print STDERR "failed ($result->{error}{category}): $result->{response}\n" }
else                    { print "$result->{response}\n" }
exit $code;

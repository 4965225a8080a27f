#!/usr/bin/env perl
# Several sessions through one `agentcell serve`: prints what happens, and cancels the last one as soon as it runs.
#
#     several.pl [MESSAGE...]
#
# When this program ends, even by kill -9, serve sees the end of its stdin and ends all sessions.
use strict;
use warnings;
use Encode qw(decode_utf8);
use IPC::Open2 qw(open2);
use JSON::PP qw(decode_json encode_json);

binmode STDOUT, ':encoding(UTF-8)';
STDOUT->autoflush;
my @questions = map { decode_utf8($_) } @ARGV ? @ARGV : ('What is here?', 'What is missing?', 'What could go wrong?');

local $SIG{PIPE} = 'IGNORE';    # a serve that is gone gives no results, which is seen below
my $serve = open2(my $from, my $to, qw(agentcell serve --jobs 2));
sub send_line { print {$to} encode_json({@_}), "\n" }    # open2 has it flushed

my %open;
for my $number (1 .. @questions) {
    my %request = (session_name => "q$number", agent_type => 'planner', project_dir => '.', events => 'summary');
    send_line(type => 'run', id => "q$number", request => {%request, starting_message => $questions[$number - 1]});
    $open{"q$number"} = 1;
}
my $last = 'q' . @questions;

while (my $line = <$from>) {
    my $message = decode_json($line);
    my ($type, $id, $error) = @{$message}{qw(type id error)};
    if    ($type eq 'result')  { print "$id ", $error ? $error->{category} : $message->{status}, ": $message->{response}\n" }
    elsif ($type eq 'refused') { print "$id refused: $error->{message}\n" }
    elsif ($type eq 'text')    { print "$id text: $message->{text}\n" }
    elsif ($type eq 'warning') { print "$id warning: $message->{message}\n" }
    elsif ($type ne 'hello')   { print "$id $type\n" }

    send_line(type => 'cancel', id => $id) if $type eq 'session_started' and $id eq $last;
    delete $open{$id} if $type eq 'result' or $type eq 'refused';    # each run has one of them
    send_line(type => 'shutdown') unless %open;
}
waitpid $serve, 0;
my ($code, $signal) = ($? >> 8, $? & 127);

die "agentcell serve ended with @{[sort keys %open]} open: code $code, signal $signal\n" if %open;
exit $code;

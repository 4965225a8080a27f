#!/bin/sh
# One session through agentcell-worker; prints the answer.
#
#     one.sh ["MESSAGE" [PROJECT_DIR]]
#
# Two named pipes are the worker's stdin and stdout. This script holds them open, and "lifeline": true makes that
# count: when the script ends, even by kill -9, the worker sees the end of its stdin and ends the session.
set -eu
. "$(dirname "$0")/json.sh"

message=$(json_string "${1:-Look around and say hello.}")
project=$(json_string "${2:-.}")

pipes=$(mktemp -d)
mkfifo "$pipes/in" "$pipes/out"
agentcell-worker < "$pipes/in" > "$pipes/out" &
exec 3> "$pipes/in" 4< "$pipes/out"
rm -r "$pipes"
trap '' PIPE # a worker that is gone gives no answer, which is seen below

printf '{"session_name":"one","agent_type":"coder","project_dir":%s,"starting_message":%s,"lifeline":true}\n' \
    "$project" "$message" >&3
IFS= read -r result <&4 || result=
wait $! && code=0 || code=$?

case $result in
'{"status":"error",'*) printf 'failed (%s): %s\n' "$(json_member category "$result")" "$(json_member response "$result")" >&2 ;;
'{"status":'*) json_member response "$result" ;;
*) echo "agentcell-worker ended without a result, with code $code" >&2 ;;
esac
exit "$code"

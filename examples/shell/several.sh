#!/bin/sh
# Several sessions through one `agentcell serve`: prints what happens, and cancels the last one as soon as it runs.
#
#     several.sh [MESSAGE...]
#
# When this script ends, even by kill -9, serve sees the end of its stdin and ends all sessions.
set -eu
. "$(dirname "$0")/json.sh"
[ $# -gt 0 ] || set -- "What is here?" "What is missing?" "What could go wrong?"

pipes=$(mktemp -d)
mkfifo "$pipes/in" "$pipes/out"
agentcell serve --jobs 2 < "$pipes/in" > "$pipes/out" &
exec 3> "$pipes/in" 4< "$pipes/out"
rm -r "$pipes"
trap '' PIPE # a serve that is gone gives no answer, which is seen below

number=0
for message; do
    number=$((number + 1))
    printf '{"type":"run","id":"q%d","request":{"session_name":"q%d","agent_type":"planner","project_dir":".",' $number $number
    printf '"starting_message":%s,"events":"summary"}}\n' "$(json_string "$message")"
done >&3
last=q$number

left=$number
while [ "$left" -gt 0 ] && IFS= read -r line <&4; do
    id=$(json_member id "$line")
    case $line in
    '{"status":"error",'*) echo "$id $(json_member category "$line"): $(json_member response "$line")" ;;
    '{"status":'*) echo "$id $(json_member status "$line"): $(json_member response "$line")" ;;
    '{"type":"text",'*) echo "$id text: $(json_member text "$line")" ;;
    '{"type":"refused",'* | '{"type":"warning",'*)
        echo "$id $(json_member type "$line"): $(json_member message "$line")" ;;
    '{"type":"hello",'*) ;;
    *) echo "$id $(json_member type "$line")" ;;
    esac
    case $line in
    '{"type":"session_started","id":"'"$last"'",'*) printf '{"type":"cancel","id":"%s"}\n' "$last" >&3 ;;
    '{"status":'* | '{"type":"refused",'*) left=$((left - 1)) ;; # each run has one of them
    esac
done

exec 3>&- # nothing runs any more, so the end of its stdin is just the end
wait $! && code=0 || code=$?
[ "$left" -eq 0 ] || echo "agentcell serve ended with $left runs open, with code $code" >&2
exit "$code"

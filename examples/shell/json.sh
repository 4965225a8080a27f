# JSON for shell scripts: by jq where there is one, otherwise by sed and awk.

# json_string TEXT: the text as a JSON string, in quotes. Without jq, control characters but tabs and line ends are left out.
json_string() {
    if command -v jq > /dev/null; then
        printf '%s' "$1" | jq -Rs .
    else
        printf '%s\n' "$1" | tr -d '\001-\010\013-\037' | sed "s/\\\\/\\\\\\\\/g; s/\"/\\\\\"/g; s/$(printf '\t')/\\\\t/g" |
            awk 'BEGIN { printf "\"" } NR > 1 { printf "\\n" } { printf "%s", $0 } END { print "\"" }'
    fi
}

# json_member NAME LINE: the first string of that name in a line of agentcell, as text; nothing when there is none.
json_member() {
    if command -v jq > /dev/null; then
        printf '%s' "$2" | jq -r --arg name "$1" 'first(.. | objects | .[$name] | strings)'
    else
        case $2 in *"\"$1\":\""*) ;; *) return 0 ;; esac # in a string every quote has a backslash: this one is a name
        printf '%b\n' "$(printf '%s\n' "${2#*"\"$1\":\""}" | sed -E 's/^(([^"\\]|\\.)*)".*/\1/; s/\\"/"/g')"
    fi
}

# Runs a command and watches what it prints, for one who talks with this script in lines.
# Arguments: READY BROKEN TIMEOUT_S COMMAND... READY and BROKEN are extended regular expressions, BROKEN may be empty.
# It says, as JSON: {"up": 1} when a line matches READY; {"down": STATUS, "log": ...} if the command ends, a line matches
# BROKEN before (STATUS -1), or nothing comes in time (STATUS -2). "log" is the end of what was printed, in base64.
# Then it answers "state" with one of the first two, and "stop", or the end of its input, by ending the command.
LOG_BYTES=16384
GRACE_S=5
ready=$1 broken=$2 left=$((10 * $3))
shift 3
log=$(mktemp) || exit 1
setsid "$@" >"$log" 2>&1 </dev/null &
pid=$!
alive() { kill -0 "$pid" 2>/dev/null; }
end() {
	kill -s TERM -- "-$pid" 2>/dev/null || kill -s TERM "$pid" 2>/dev/null
	waited=0
	while alive && [ "$waited" -lt $((10 * GRACE_S)) ]; do
		sleep 0.1
		waited=$((waited + 1))
	done
	kill -s KILL -- "-$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}
leave() { rm -f -- "$log"; exit "$1"; }
down() { printf '{"down": %s, "log": "%s"}\n' "$1" "$(tail -c "$LOG_BYTES" "$log" | base64 | tr -d '\n')"; }
trap 'end; leave 1' HUP INT TERM
while ! grep -a -E -q -- "$ready" "$log"; do
	if ! alive; then
		wait "$pid"
		down "$?"
		leave 0
	fi
	if [ -n "$broken" ] && grep -a -E -q -- "$broken" "$log"; then
		end
		down -1
		leave 0
	fi
	if [ "$left" -le 0 ]; then
		end
		down -2
		leave 0
	fi
	sleep 0.1
	left=$((left - 1))
done
printf '{"up": 1}\n'
while read -r word; do
	if ! alive; then
		wait "$pid"
		down "$?"
		leave 0
	fi
	[ "$word" = stop ] && break
	printf '{"up": 1}\n'
done
end
down 0
leave 0

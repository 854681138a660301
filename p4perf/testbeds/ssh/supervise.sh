# Runs a command in a session of its own until it ends, its time is over, or standard input ends.
# Arguments: MODE FOLDER FILES LIMIT_S COMMAND... MODE is
#   job   in a new FOLDER with copies of what is in FILES (if not empty); other files that are left there are reported;
#   talk  the same, but lines of the input go to the command, which gets GRACE_S to end when the input does;
#   step  in a FOLDER that is there.
# A limit of 0 is none.
GRACE_S=2
mode=$1 folder=$2 files=$3 limit=$4
shift 4
report() { printf '\n%s %s\n' "$0" "$*" >&2; }
fail() {
	[ "$mode" = step ] || { cd /; rm -rf -- "$folder"; }
	report failed 1
	exit 1
}
[ "$mode" = step ] || mkdir -- "$folder" || fail
cd -- "$folder" || fail
[ -z "$files" ] || cp -- "$files"/* . || fail
command -v "$1" >/dev/null 2>&1 || { report absent 1; fail; }
input=/dev/null grace=0
[ "$mode" != talk ] || { input=$folder/.input grace=$GRACE_S; mkfifo -- "$input" || fail; }

told='' late='' gone='' pid=''
end() { [ -z "$1" ] || kill -s KILL -- "-$1" || kill -s KILL "$1"; }
trap 'told=1 gone=1; end "$pid"' USR1
trap 'told=1 late=1; end "$pid"' USR2
exec 3<&0
setsid sh -c 'cat >"$2"; sleep "$3"; kill -USR1 "$1"' sh "$$" "$input" "$grace" <&3 >/dev/null 2>&1 &
reader=$! timer=''
if [ "$limit" != 0 ]; then
	setsid sh -c 'sleep "$2"; kill -USR2 "$1"' sh "$$" "$limit" </dev/null >/dev/null 2>&1 3<&- &
	timer=$!
fi
setsid "$@" <"$input" 3<&- &
pid=$!
# From here on nothing that happens to the connection may keep the shell from ending the command.
exec 3<&- 4>&2 2>/dev/null
trap '' HUP PIPE
[ -z "$late$gone" ] || end "$pid"
wait "$pid"
status=$?
while [ -n "$told" ]; do
	told=''
	wait "$pid"
	again=$?
	[ "$again" = 127 ] || status=$again
done
end "$pid"
end "$reader"
end "$timer"
exec 2>&4 4>&-
[ -z "$late" ] || report late 1
kept=
if [ "$mode" = job ] && [ -z "$gone" ]; then
	for name in *; do
		case $name in *[!A-Za-z0-9._+-]*) continue ;; esac
		if [ -f "$name" ] && [ ! -h "$name" ] && { [ -z "$files" ] || [ ! -e "$files/$name" ]; }; then
			report file "$(wc -c <"$name")" "$name"
			kept=1
		fi
	done
fi
[ "$mode" = step ] || [ -n "$kept" ] || { cd /; rm -rf -- "$folder"; }
exit "$status"

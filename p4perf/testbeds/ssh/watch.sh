# The session that a connection lives by: makes the folders of the node, says where they are, and waits.
# Arguments: WORK ID SILENCE_S. Input: a line now and then. What is half done lies in WORK/sessions/ID, and goes with it.
work=$1 id=$2 silence=$3
lacks=
for tool in base64 cat cp head ln mkdir mkfifo mv rm setsid sha256sum sleep tail timeout wc; do
	command -v "$tool" >/dev/null 2>&1 || lacks="$lacks $tool"
done
[ -z "$lacks" ] || { printf 'it lacks%s\n' "$lacks" >&2; exit 1; }
case $work in "~/"*) work=$HOME/${work#"~/"} ;; esac
umask 077
mkdir -p -- "$work/builds" "$work/files" "$work/sessions" && work=$(cd -P -- "$work" && pwd -P) || exit 1
# A full disk or a read-only one shows here, not in the middle of something.
here=$work/sessions/$id
mkdir -- "$here" && echo $$ >"$here/.pid" && mv "$here/.pid" "$here/pid" || { rm -rf -- "$here"; exit 1; }
leave() { rm -rf -- "$here"; }
trap exit HUP INT TERM
for left in "$work"/sessions/*/pid; do
	kill -0 "$(cat "$left")" 2>/dev/null || rm -rf -- "${left%/pid}"
done
printf '{"work": "%s"}\n' "$work"
while beat=$(timeout "$silence" head -n 1); state=$?; [ "$state" = 0 ] && [ -n "$beat" ]; do :; done
# An input that has not ended but is silent: the network is cut, and this sshd has not noticed. All jobs end with it.
[ "$state" != 124 ] || kill "$PPID"

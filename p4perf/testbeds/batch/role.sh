# What the scripts of a role do with the steps of a trial; sourced by them, in the folder of the role.
# Every command leaves NAME.stdout and NAME.stderr in $out, and a line in steps.txt. After the first that fails, nothing
# is begun any more, but the meetings with the other node are kept, and what was begun is released.
# Needs timeout and date of coreutils.
case $trial in
'' | *[!a-z0-9-]*) exit 2 ;;
esac
here=$(pwd)
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 3
folder=$here/jobs/$trial
rm -rf "$folder" "$out"/*
mkdir -p "$folder" || exit 3
failed='' lost='' stopped='' begun='' during='' serving='' answers=0
trap 'stopped=yes' HUP INT TERM
note() { printf '%s\n' "$*" >>"$out/steps.part" || exit 3; }
size() { wc -c <"$1" | tr -d ' '; }
note "trial $trial"
note "role $role"
note "started $(date -u +%Y-%m-%dT%H:%M:%S+00:00)"
trial_ns=$(date +%s%N)
# Where the trial before was lost on this node, the other one still waits in it: it comes when it has given that up.
previous=$(sed -n "/^$trial /q;p" trials.txt | tail -n 1)
previous=${previous%% *} patience=1
[ -z "$previous" ] || grep -q -x -e "$previous" done.txt 2>/dev/null || patience=2

use() { # use BUILD FILES: what the next command finds in $build and $folder
	[ -z "$failed$stopped" ] || [ -n "$begun" ] || return 0
	build=$here/built/$1
	if [ "$1" != - ] && [ ! -d "$build" ] && [ ! -e "$out/build.log" ]; then
		cat "$build.log" >"$out/build.log" 2>/dev/null || echo "no log of the build" >"$out/build.log"
		note "unbuilt $(size "$out/build.log")"
		failed=yes
	fi
	[ "$2" = - ] || cp -R "files/$2/." "$folder/" || exit 3
}
run() { # run NAME LIMIT_S COMMAND...
	name=$1 limit_s=$2
	shift 2
	begun_ns=$(date +%s%N)
	(cd "$folder" && exec timeout -s KILL "$limit_s" "$@") \
		>"$out/$name.stdout" 2>"$out/$name.stderr" </dev/null 8>&-
	code=$?
	took_ns=$(($(date +%s%N) - begun_ns))
	late=no
	# timeout dies of the signal that it sends.
	[ $code = 137 ] && [ $((took_ns / 1000000000 + 1)) -gt "${limit_s%.*}" ] && late=yes
	note "step $name $code $late $took_ns $(size "$out/$name.stdout") $(size "$out/$name.stderr")"
	return $code
}
step() { # as run, unless something failed
	[ -z "$failed$stopped" ] || return 0
	run "$@" || failed=yes
}
offer() { # as step, but how a load generator ends says little, unless it had to be ended
	[ -z "$failed$stopped" ] || return 0
	run "$@" || [ "$late" = no ] || failed=yes
}
beside() { # as run, beside what follows
	[ -z "$failed$stopped" ] || return 0
	run "$@" &
	during="$during $!"
}
beside_ended() {
	[ -z "$during" ] || wait $during
	during=
}
begin() { # a part that is released at its end
	begun='' answers=0
	[ -n "$failed$stopped" ] || begun=yes
}
release() { # as run, if its part was begun
	[ -z "$begun" ] || run "$@" || :
}
pause() {
	[ -n "$failed$stopped" ] || sleep "$1"
}
heard() { # the next answer of serve.sh, within a number of seconds
	answers=$((answers + 1)) left=$((10 * $1))
	while [ "$(wc -l <"$out/$main.said")" -lt "$answers" ]; do
		if [ "$left" -le 0 ] || ! kill -0 "$serving" 2>/dev/null; then
			return 1
		fi
		sleep 0.1
		left=$((left - 1))
	done
	case $(sed -n "${answers}p" "$out/$main.said") in
	'{"up"'*) return 0 ;;
	esac
	return 1
}
say() {
	[ -z "$serving" ] || (printf '%s\n' "$1" >&8) 2>/dev/null || :
}
serve() { # serve NAME LIMIT_S READY BROKEN TIMEOUT_S COMMAND...
	main=$1 limit_s=$2
	shift 2
	[ -z "$failed$stopped" ] || return 0
	: >"$out/$main.said"
	rm -f "$here/jobs/$trial.words"
	mkfifo "$here/jobs/$trial.words" || exit 3
	(cd "$folder" && exec sh "$here/serve.sh" "$@") \
		<"$here/jobs/$trial.words" >"$out/$main.said" 2>"$out/$main.stderr" &
	serving=$!
	exec 8>"$here/jobs/$trial.words"
	heard "$limit_s" || failed=yes
}
check() { # whether the device still runs
	[ -z "$failed$stopped" ] && [ -n "$serving" ] || return 0
	say state
	heard 30 || failed=yes
}
down() {
	[ -n "$serving" ] || return 0
	say stop
	exec 8>&-
	wait "$serving"
	serving=''
	rm -f "$here/jobs/$trial.words"
	sed -n 's/.*"log": "\([^"]*\)".*/\1/p' "$out/$main.said" | base64 -d >"$out/$main.log" 2>/dev/null || :
	note "said $main $(size "$out/$main.said")"
}
meet() { # meet NAME LIMIT_S: wait for the other node
	[ -z "$lost$stopped" ] || return 0
	timeout -s KILL "$(($2 * patience))" sh barrier.sh "$trial-$1" >>"$out/barrier.txt" 2>&1 </dev/null 8>&-
	code=$? patience=1
	note "met $1 $code"
	[ "$code" = 0 ] || lost=yes failed=yes
}
fresh() { # files that the next command writes are not there yet
	for file; do rm -f "$folder/$file"; done
}
keep() { # keep NAME FILE...: files that a command left
	[ -z "$stopped" ] || return 0
	name=$1
	shift
	for file; do
		[ -f "$folder/$file" ] || continue
		cp "$folder/$file" "$out/$name-$file" || exit 3
		note "left $name $file $(size "$out/$name-$file")"
	done
}
finish() {
	rm -rf "$folder"
	echo "$trial" >>done.txt
	[ -z "$stopped" ] || exit 143
	note "ended $(($(date +%s%N) - trial_ns))"
	mv "$out/steps.part" "$out/steps.txt" || exit 3
}

#!/bin/sh
# sh trial.sh NAME FOLDER runs the trial of that name and puts trial.stdout, trial.stderr and trial.outcome into FOLDER.
# Needs timeout and date of coreutils. Ends with 0 if the trial was run, whatever came of it.
name=$1
case $name in
'' | *[!a-z0-9-]*)
	echo "trial.sh: $name is no name of a trial" >&2
	exit 2
	;;
esac
mkdir -p "$2" && out=$(cd "$2" && pwd) || exit 3
cd "$(dirname "$0")" && here=$(pwd) || exit 3
# shellcheck disable=SC2046 # the words of a line of trials.txt have nothing that a shell would take apart
set -- $(sed -n "s/^$name //p" trials.txt)
if [ $# != 3 ]; then
	echo "trial.sh: trials.txt has no trial $name" >&2
	exit 2
fi
limit_s=$1 key=$2 files=$3
rm -f "$out"/trial.*
build=$here/built/$key folder=$here/jobs/$name
export build folder
outcome() {
	printf '%s\n' "trial=$name" "started=$started" "$@" >"$out/trial.outcome.part" &&
		mv "$out/trial.outcome.part" "$out/trial.outcome" || exit 3
}
started=$(date -u +%Y-%m-%dT%H:%M:%S+00:00)
if [ "$key" != - ] && [ ! -d "$build" ]; then
	cat "$build.log" >"$out/trial.stderr" || echo "no log of the build" >"$out/trial.stderr"
	: >"$out/trial.stdout"
	outcome "build=failed" "stdout_bytes=0" "stderr_bytes=$(wc -c <"$out/trial.stderr" | tr -d ' ')"
	exit 0
fi
rm -rf "$folder"
mkdir -p "$folder" || exit 3
if [ "$files" != - ]; then
	cp -R "files/$files/." "$folder/" || exit 3
fi
begun_ns=$(date +%s%N)
(cd "$folder" && exec timeout -s KILL "$limit_s" sh "$here/trials/$name.sh") \
	>"$out/trial.stdout" 2>"$out/trial.stderr" </dev/null
code=$?
took_ns=$(($(date +%s%N) - begun_ns))
late=no
# timeout dies of the signal that it sends.
[ $code = 137 ] && [ $((took_ns / 1000000000 + 1)) -gt "${limit_s%.*}" ] && late=yes
outcome "exit=$code" "late=$late" "duration_ns=$took_ns" \
	"stdout_bytes=$(wc -c <"$out/trial.stdout" | tr -d ' ')" "stderr_bytes=$(wc -c <"$out/trial.stderr" | tr -d ' ')"
rm -rf "$folder"

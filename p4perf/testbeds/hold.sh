# Holds all cores at a frequency until a line comes or standard input ends, and sets them back.
# Arguments: CPUS (their folder), KHZ, TOLERANCE_KHZ. It says {"held": true}, and {"changed": false} when they are set
# back, or {"changed": true} if somebody else had set them meanwhile.
cpus=$1 khz=$2 tolerance=$3
policies=$(for policy in "$cpus"/cpu[0-9]*/cpufreq; do (cd -P -- "$policy" 2>/dev/null && pwd -P); done | sort -u)
[ -n "$policies" ] || { echo 'it cannot be set: it has no cpufreq' >&2; exit 1; }
put() {
	if ! echo "$2" 2>/dev/null >"$1"; then
		echo "cannot set $1 to $2 (root can)" >&2
		return 1
	fi
}
# Whichever bound would cross the other comes second.
bounds() {
	if [ "$2" -gt "$(cat "$1/scaling_max_freq")" ]; then
		put "$1/scaling_max_freq" "$3" && put "$1/scaling_min_freq" "$2"
	else
		put "$1/scaling_min_freq" "$2" && put "$1/scaling_max_freq" "$3"
	fi
}
leave() {
	trap '' HUP INT TERM PIPE EXIT
	printf '%s' "$before" | while IFS=' ' read -r low high policy; do bounds "$policy" "$low" "$high"; done
}
kept() {
	for policy in $policies; do
		for name in scaling_min_freq scaling_max_freq; do
			taken=$(cat "$policy/$name")
			if ! [ "$taken" -le $((khz + tolerance)) ] || ! [ "$taken" -ge $((khz - tolerance)) ]; then
				echo "the cores cannot run at $khz kHz: $policy/$name became $taken" >&2
				return 1
			fi
		done
	done
}
before=
trap leave EXIT
trap exit HUP INT TERM
IFS='
'
for policy in $policies; do
	before="$before$(cat "$policy/scaling_min_freq") $(cat "$policy/scaling_max_freq") $policy
"
	bounds "$policy" "$khz" "$khz" || exit 1
done
kept || exit 1
echo '{"held": true}'
read -r _
kept && changed=false || changed=true
leave
echo "{\"changed\": $changed}"

# Steps of target nfp4000, on the node of the card. Arguments: VERB, then what it says below. Works with any POSIX shell.
# rtecli prints Python or JSON, waits for ever where nothing answers, and ends with status 1 and "error: ..." on stderr.
ANSWER_S=30
verb=$1
shift
ask() { timeout "$ANSWER_S" "$@"; }

case $verb in
status) # RTECLI LOG: tell the state of the runtime; if it does not answer, what its log says last
	ask "$1" status
	status=$?
	[ "$status" = 0 ] || [ ! -r "$2" ] || tail -n 5 -- "$2" >&2
	exit "$status"
	;;
unload) # RTECLI: unload the design, if one is loaded and the runtime answers
	ask "$1" status 2>/dev/null | grep -q -E "is_loaded['\"]?: *[Tt]rue" || exit 0
	exec "$1" design-unload
	;;
load) # RTECLI BUILD [RULES]: load firmware and design, and the rules in the names that the compiler gave to keys
	rtecli=$1 build=$2 rules=$3 design=$2/out/pif_design.json
	[ -n "$rules" ] || exec "$rtecli" design-load -f "$build/firmware.nffw" -p "$design"
	if grep -q '"MainIngress::scalars\.' -- "$rules" && ! grep -q '"MainIngress::scalars\.' -- "$design"; then
		named=$(mktemp) || exit
		trap 'rm -f -- "$named"' EXIT
		sed 's/"MainIngress::scalars\./"scalars./g' -- "$rules" >"$named" || exit
		rules=$named
	fi
	"$rtecli" design-load -f "$build/firmware.nffw" -p "$design" -c "$rules"
	;;
ports) # RTECLI PORT...: look for physical ports; a runtime that does not list any is believed to have them
	list=$(ask "$1" ports list 2>/dev/null) || exit 0
	shift
	known=$(printf '%s\n' "$list" | grep -o -E "token['\"]?: *u?['\"]p[0-9]+" | sed "s/.*['\"]//")
	[ -n "$known" ] || exit 0
	for port; do
		printf '%s\n' "$known" | grep -q -x -- "$port" && continue
		printf 'error: the program sends by port %s, and the card has %s\n' "$port" "$(echo $known)" >&2
		exit 1
	done
	;;
interfaces) # SYS NAME=ADDRESS...: what the driver of each PCI address counts, if it has a network device
	sys=$1
	shift
	for word; do
		for device in "$sys/bus/pci/devices/${word#*=}/net"/*; do
			[ -e "$device" ] || continue
			printf 'interface %s %s\n' "${word%%=*}" "${device##*/}"
			ask ethtool -S "${device##*/}" 2>/dev/null
		done
	done
	exit 0
	;;
built) # BUILD: what nfp4build says of its work, in lines of a word and a value
	printf 'firmware_bytes %s\n' "$(wc -c <"$1/firmware.nffw")"
	printf 'compile_ms %s\n' "$(head -c 20 -- "$1/compile_ms")"
	for file in build_info pif_design; do
		for place in "$1/out/$file.json" "$1/$file.json"; do
			[ -r "$place" ] || continue
			printf '%s %s\n' "$file" "$(head -c 16000000 -- "$place" | tr -d '\r\n')"
			break
		done
	done
	;;
*)
	echo "error: no step $verb" >&2
	exit 2
	;;
esac

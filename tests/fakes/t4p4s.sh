#!/bin/bash
# A stand-in for t4p4s.sh of P4ELTE/t4p4s (commit 7cd5bac): its options, files, messages and exit codes, without a
# compiler and without DPDK. The switch that it "compiles" checks its arguments as DPDK and t4p4s do, says what a switch
# without dbg says, and waits for its end. Of a variant with sources of its own (include-srcs) it compiles these for
# DPDK, with src/main.c of t4p4s_src in the place of t4p4s' own code.
#
# What goes wrong is said in lights.cfg, in words behind "; fake ":
#   slice underscore          the compiler leaves something out, with a warning and exit code 0
#   p4-error traceback        the compiler refuses the program
#   meson ninja link disk     compiling C goes wrong; after meson the script goes on
#   no-switch                 compiling ends with 0 and there is nothing
#   segfault mbuf silent ends dies   the switch: dies at once, has too little memory, is never ready, ends, dies later
#   compile-hangs             the compiler never ends

ERROR_CODE=0
nn='\033[0m'
declare -A OPTS IGNORED
FAKE=" $(sed -n 's/^; fake //p' lights.cfg | tr '\n' ' ') "
fakes() { [[ "$FAKE" == *" $1 "* ]]; }

value() {
	[ -n "${IGNORED[$1]}" ] && echo off && return
	echo "${OPTS[$1]:-off}"
}
msg() { [ "$(value silent)" != off ] || echo -e "$@"; }
exit_program() {
	echo -e "$nn"
	[ -z "$1" ] || echo -e "Error$nn: $*" >&2
	exit "$ERROR_CODE"
}
exit_on_error() {
	[ -z "$1" ] || [ "$1" = 0 ] && return
	ERROR_CODE=$1
	exit_program "$2 (error code: $1$nn)"
}
trap 'echo -e "\nInterrupted, exiting..." >&2; ERROR_CODE=254; exit_program' INT

T4P4S_BUILD_DIR=${T4P4S_BUILD_DIR-./build}
mkdir -p "$T4P4S_BUILD_DIR" build/tools # the latter whatever the environment says
cat colours.cfg >build/tools/colours.cfg.sh
cat lights.cfg >build/tools/lights.cfg.sh
EXAMPLES_CONFIG_FILE=${EXAMPLES_CONFIG_FILE-examples.cfg}
P4_SRC_DIR=${P4_SRC_DIR-./examples/}
ARCH_OPTS_FILE=${ARCH_OPTS_FILE-opts_${ARCH-dpdk}.cfg}
CFGFILES=${CFGFILES-!cmdline!,!varcfg!$EXAMPLES_CONFIG_FILE,$ARCH_OPTS_FILE}
# Ends with code 0, as the real one does.
[ -n "$P4C" ] || exit_program "\$P4C not defined"
[ -n "$RTE_SDK" ] || exit_program "\$RTE_SDK not defined"

form='^((\^|:|::|%|%%|@)|([A-Za-z0-9_.-]+)(=([^[:space:]].*))?[[:space:]]*->[[:space:]]*)?([A-Za-z0-9_.-]+)([[:space:]]*(\+{0,2}\??=)[[:space:]]*([^[:space:]].*))?[[:space:]]*(;.*)?$'
take() { # one option
	local text=${1:0:1024}
	[ -n "${text// /}" ] && [[ "$text" != \;* ]] || return
	if [[ "$text" == *.p4* ]] && [ -f "$text" ]; then
		local base=${text##*/}
		OPTS[example]=${base%.*} OPTS[source]=$text
		return
	fi
	if ! [[ "$text" =~ $form ]]; then
		echo -e "Cannot parse option $text (origin: $2)"
		return
	fi
	local prefix=${BASH_REMATCH[2]} on=${BASH_REMATCH[3]} expected name=${BASH_REMATCH[6]}
	local operator=${BASH_REMATCH[8]} given
	read -r expected <<<"${BASH_REMATCH[5]}"
	read -r given <<<"${BASH_REMATCH[9]:-on}"
	if [ -n "$on" ]; then
		[ "$(value "$on")" = off ] && [ "$expected" != off ] && return
		[ -n "$expected" ] && [ "${OPTS[$on]}" != "$expected" ] && return
		given=${given//"\${$on}"/$(value "$on")}
	fi
	case $prefix in
	^) IGNORED[$name]=on ;;
	: | :: | % | %%)
		local found
		found=$(find -L "$P4_SRC_DIR" -type f -name "$name.p4*")
		[ -n "$found" ] || exit_program "Could not find P4 file for $name$nn, candidates: (no candidates found)$nn"
		OPTS[example]=$name OPTS[source]=$found
		[[ $prefix != ::* && $prefix != %% ]] || OPTS[dbg]=on
		[[ $prefix != %* ]] || OPTS[variant]=test
		;;
	*)
		case $operator in
		+=) OPTS[$name]="${OPTS[$name]:+${OPTS[$name]} }$given" ;;
		++=) OPTS[$name]="${OPTS[$name]:+${OPTS[$name]}\n}$given" ;;
		'?=') [ "$(value "$name")" != off ] || OPTS[$name]=$given ;;
		*)
			OPTS[$name]=$given
			[ "$name=$given" != light=0 ] || nn=
			;;
		esac
		;;
	esac
}
bundle() { # options of a line of examples.cfg, and of the bundles (@name) in it
	local word line
	for word in "$@"; do
		if [[ "$word" == @* ]]; then
			line=$(grep -e "^$word\s" "$file") && bundle ${line#"$word"}
		else
			take "$word" "$file"
		fi
	done
}
IFS=, read -r -a files <<<"$CFGFILES"
for file in "${files[@]}"; do
	case $file in
	!cmdline!)
		for option; do take "$option" "command line"; done
		[ "$(value example)" != off ] || exit_program "No example to run"
		[ "$(value variant)" != off ] || OPTS[variant]=std
		;;
	!varcfg!*)
		file=${file#!varcfg!}
		line=$(grep -e "^${OPTS[example]}\(@${OPTS[variant]}\)\?\s" "$file" | head -n 1) && bundle ${line#* }
		;;
	*) while IFS= read -r option; do take "$option" "$file"; done <"$file" ;;
	esac
done
[ "$(value model)" != off ] || exit_on_error 10 "Cannot find model$nn (e.g. v1model$nn or psa$nn) for example ${OPTS[example]}$nn"

compile_dir=${T4P4S_COMPILE_DIR-$T4P4S_BUILD_DIR/${OPTS[example]}@${OPTS[variant]}-${OPTS[model]}}
target=$T4P4S_BUILD_DIR/last
[ "$(value p4)$(value c)$(value run)" != offoffoff ] || OPTS[p4]=on OPTS[c]=on OPTS[run]=on
mkdir -p "$compile_dir"
rm -rf "$target" "$T4P4S_BUILD_DIR/aftermost"
ln -s "$(realpath "$compile_dir")" "$target"
ln -s "$(realpath "$compile_dir")" "$T4P4S_BUILD_DIR/aftermost"
mkdir -p "$target/srcgen"
logs=${T4P4S_LOG_DIR-$(realpath "$target")/log}
mkdir -p "$logs"
executable=$target/build/${OPTS[example]}

if [ "$(value run)" != off ]; then
	sudo echo -n ""
	if [ "$(value ctr)" = off ]; then
		msg "[NO  CONTROLLER$nn]"
	else
		exit_on_error 2 "Controller compilation failed$nn" # the stand-in has none
	fi
fi

if [ "$(value p4)" != off ]; then
	msg "[COMPILE  P4-16$nn] ${OPTS[source]}@${OPTS[variant]}$nn"
	fakes compile-hangs && sleep 1000
	echo "# written by the compiler" >src/utils/codegen.py
	status=0
	"$P4C/build/p4test" "${OPTS[source]}" --toJSON "$target/srcgen/program.json" --p4v 16 || status=1
	fakes p4-error && status=1 && echo "Error: while formatting statement: Assignment to unsupported source type Add in: x" >&2
	fakes traceback && status=1 && echo "TypeError: 'float' object cannot be interpreted as an integer" >&2
	fakes slice && echo "Warning: while Compiling assignment: Assignment to slice is currently not supported" >&2
	fakes underscore && echo "Warning: while adding const entry: Underscore entry for const entry for table t_0 not supported yet" >&2
	[ "$status" = 0 ] || exit_on_error 3 "P4 to C compilation failed$nn"
	cp "${OPTS[source]}" "$target/srcgen/dataplane.c"
	bits=$(awk '/^header /{on = 1} /^}/{on = 0} on && match($0, /bit<[0-9]+>/) {
		n += substr($0, RSTART + 4, RLENGTH - 5) } END {print n + 0}' "${OPTS[source]}")
	{
		echo "#pragma once"
		for header in ${OPTS[include-hdrs]}; do echo "#include \"$header\""; done
		echo "#define HEADERS_BYTES $((bits / 8))"
	} >"$target/srcgen/gen_include.h"
fi

# Sources that are named as they are, and not by a folder of t4p4s: hdep/'dpdk/dpdk_nicon.c'.
own=$(for source in ${OPTS[include-srcs]}; do [[ "$source" != \'* ]] || printf '%s ' "${source//\'/}"; done)
build_own() { # as meson and ninja do, in the folder of the program
	local name=${OPTS[example]} source objects= missing flag
	local flags=(-O3 -fvisibility=hidden -Wall -Wno-unused $(pkg-config --cflags libdpdk))
	flags+=(-Isrcgen -I../../src -Ibuild "-fuse-ld=$T4P4S_LD")
	for flag in ${OPTS[cflags]}; do flags+=("$flag"); done
	for source in $own; do
		[ -e "$source" ] || { missing=$source; break; }
	done
	echo 'int main(void) { return 0; }' >build/sanity.c
	if [ -n "$missing" ]; then
		echo "meson.build:40:0: ERROR: File $missing does not exist." >>log/20_meson.txt
	elif ! { sudo CC="ccache $T4P4S_CC" ccache "$T4P4S_CC" build/sanity.c -o build/sanity && build/sanity; }; then
		echo "meson.build:1:0: ERROR: Executables created by c compiler are not runnable." >>log/20_meson.txt
	else
		for source in ../../src/main.c $own; do
			objects+=" $name.p/$(basename "$source").o"
			sudo ccache "$T4P4S_CC" "${flags[@]}" -o "build/$name.p/$(basename "$source").o" -c "$source" 2>&1 || return
		done
		cd build && sudo ccache "$T4P4S_CC" -o "$name" $objects -Wl,--as-needed -Wl,--no-undefined \
			"-fuse-ld=$T4P4S_LD" /usr/local/lib/x86_64-linux-gnu/librte_bus_vdev.so $(pkg-config --libs libdpdk) 2>&1
		return
	fi
	echo "ninja: error: loading 'build.ninja': No such file or directory" >log/22_ninja.txt
	return 1
}

if [ "$(value c)" != off ]; then
	msg "[COMPILE SWITCH$nn]"
	[ -e meson.build.base ] || exit_on_error 1 "no meson.build.base"
	mkdir -p "$target/build/${OPTS[example]}.p"
	echo "The Meson build system" >"$logs/20_meson.txt"
	: >"$logs/22_ninja.txt"
	status=0
	if fakes meson; then
		# Meant to end the script with code 1; it does not.
		echo 'meson.build:99:4: ERROR: Dependency "libdpdk" not found, tried pkgconfig and cmake' >>"$logs/20_meson.txt"
		echo "ninja: error: loading 'build.ninja': No such file or directory" >"$logs/22_ninja.txt"
		status=1
	elif fakes ninja; then
		echo "FAILED: program.p/srcgen_dataplane.c.o"
		echo "../srcgen/dataplane.c:5:9: error: too few arguments to function 'ternary_add_promote'"
		status=1
	elif fakes link; then
		echo "ld.lld: error: undefined symbol: externimpl_resubmit"
		status=1
	elif fakes disk; then
		echo "fatal error: error writing to dataplane.o: No space left on device"
		status=1
	elif [ -n "$own" ] && ! fakes no-switch; then
		(cd "$target" && build_own) || status=$?
	fi
	exit_on_error "$status" "C compilation using ninja failed$nn, see log $logs/22_ninja.txt$nn"
	fakes no-switch || [ -n "$own" ] || {
		cat >"$executable" <<'SWITCH'
#!/bin/bash
# EAL arguments, then those of t4p4s (dpdk_lib_parse_args.c), checked as dpdk_lib_init_hw.c does.
refuse() {
	printf 'EAL: Error - exiting with code: 1\n  Cause: %s\n' "$1" >&2
	exit 1
}
declare -A cpu_of
devices=0
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	case $1 in
	--lcores)
		IFS=, read -r -a pairs <<<"$2"
		for pair in "${pairs[@]}"; do
			[[ "$pair" =~ ^[0-9]+@[0-9]+$ ]] || refuse "Invalid EAL arguments"
			cpu_of[${pair%@*}]=${pair#*@}
		done
		shift
		;;
	-c) for ((n = 0; n < 64; n++)); do (($2 >> n & 1)) && cpu_of[$n]=$n; done; shift ;;
	-n | --file-prefix) shift ;;
	-a) devices=$((devices + 1)); shift ;;
	--huge-unlink) ;;
	*) refuse "Invalid EAL arguments" ;;
	esac
	shift
done
shift
mask=0 map=
while [ $# -gt 0 ]; do
	case $1 in
	-p) mask=$(($2)) ;;
	--config) map=$2 ;;
	*) refuse "Invalid T4P4S arguments" ;;
	esac
	shift 2
done
echo "EAL: Detected CPU lcores: 64" >&2
while [[ "$map" =~ \(([0-9]+),([0-9]+),([0-9]+)\)(.*) ]]; do
	port=${BASH_REMATCH[1]} queue=${BASH_REMATCH[2]} lcore=${BASH_REMATCH[3]} map=${BASH_REMATCH[4]}
	[ -n "${cpu_of[$lcore]}" ] || refuse "check_lcore_params failed"
	((port < devices && mask >> port & 1)) || refuse "check_port_config failed"
	queues[lcore]+=" -- lcoreid=$lcore portid=$port rxqueueid=$queue"$'\n'
done
case " $FAKE " in
*" mbuf "*) refuse "Cannot init mbuf pool on socket 0: no appropriate memory area found in which to create memzone" ;;
*" segfault "*) kill -SEGV $$ ;;
*" silent "*) exec sleep 1000 ;;
esac
for lcore in "${!cpu_of[@]}"; do
	if [ -n "${queues[$lcore]}" ]; then
		printf 'P4_FWD: entering main loop on lcore %s\n' "$lcore" >&2
		printf '%s' "${queues[$lcore]}" | sed 's/^/P4_FWD: /' >&2
	else
		printf 'P4_FWD: lcore %s has nothing to do\n' "$lcore" >&2
	fi
done
[ "${#queues[@]}" != 0 ] || exit 0
case " $FAKE " in
*" ends "*) exit 0 ;;
*" dies "*) sleep 0.5; kill -SEGV $$ ;;
esac
exec sleep 1000
SWITCH
		chmod +x "$executable"
	}
fi

if [ "$(value run)" != off ]; then
	msg "[RUN SWITCH$nn] $executable$nn"
	if [ "$(value hugepages)" != keep ] && fakes no-hugepages; then
		exit_on_error 8 "Needed to reserve 2048$nn hugepages, got only 0$nn"
	fi
	arguments="${OPTS[ealopts]} -- ${OPTS[cmdopts]}"
	echo -e "Executed at $(date +"%Y%m%d %H:%M:%S")\n" >"$logs/last.txt"
	dated=$logs/$(date +"%Y%m%d_%H%M%S")_${OPTS[example]}@${OPTS[variant]}
	export FAKE
	sudo -E "$executable" $arguments |& tee >(tee -a "$logs/last.lit.txt" | sed 's/\x1B\[[0-9;]*[JKmsu]//g' >>"$logs/last.txt") |&
		tee >(tee "$dated.lit.txt" | sed 's/\x1B\[[0-9;]*[JKmsu]//g' >"$dated.txt")
	ERROR_CODE=${PIPESTATUS[0]}
	[ "$ERROR_CODE" != 139 ] || why="(C code execution: Segmentation fault$nn)"
	[ "$ERROR_CODE" != 255 ] || why="(Switch execution error$nn)"
	if [ "$ERROR_CODE" = 0 ]; then
		msg "${nn}T₄P₄S switch running ${OPTS[source]}$nn exited normally$nn"
	else
		msg "\n${nn}T₄P₄S switch running ${OPTS[source]}$nn exited with error code $ERROR_CODE$nn $why"
		msg " - Runtime options were: $arguments"
	fi
fi
exit_program

# Facts of this machine, one "key=value" per line. Reads only; a fact that cannot be had is left out.
# With "now" only those that may change at any time, without the tools that are installed.
asked=${1:-}
say() { [ -n "$2" ] && printf '%s=%s\n' "$1" "$2"; }
# Most facts are read by the shell itself: a process for each of them would take most of the time of a short run.
first() { { IFS= read -r line <"$1"; } 2>/dev/null && printf '%s\n' "$line"; }
# Files below /proc/sys end after the first read, and the shell reads byte by byte.
setting() { head -n 1 "/proc/sys/$1" 2>/dev/null; }

say machine "$(uname -m)"
say kernel "$(uname -r)"
say system "$(. /etc/os-release 2>/dev/null && printf '%s' "$PRETTY_NAME")"
model_name='' family='' model='' stepping='' microcode='' virtual=''
{
	while IFS=: read -r key value; do
		value=${value# }
		case $key in
		"model name"*) model_name=$value ;;
		"cpu family"*) family=$value ;;
		model*) model=$value ;;
		stepping*) stepping=$value ;;
		microcode*) microcode=$value ;;
		flags*) case " $value " in *" hypervisor "*) virtual=yes ;; esac ;;
		"") break ;;
		esac
	done </proc/cpuinfo
} 2>/dev/null
say cpu_model "$model_name"
say cpu_id "$family-$model-$stepping"
say microcode "$microcode"
say virtual_machine "$virtual"
say cpus "$(getconf _NPROCESSORS_ONLN)"
allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
say cpus_allowed "$allowed"
say measuring_cpu "${allowed##*[,-]}"
say isolated_cpus "$(first /sys/devices/system/cpu/isolated)"
# Interrupts, and how many of them the measuring CPU gets.
listed() {
	cpu=$2 IFS=,
	set -- $1
	unset IFS
	for range; do [ "$cpu" -ge "${range%-*}" ] && [ "$cpu" -le "${range#*-}" ] && return; done
	return 1
}
irqs=0 irqs_there=0
for irq in /proc/irq/[0-9]*; do
	list=$(first "$irq/effective_affinity_list")
	[ -n "$list" ] || list=$(first "$irq/smp_affinity_list")
	[ -n "$list" ] || continue
	irqs=$((irqs + 1))
	listed "$list" "${allowed##*[,-]}" && irqs_there=$((irqs_there + 1))
done
[ "$irqs" -gt 0 ] && say irqs "$irqs" && say irqs_there "$irqs_there"
for index in /sys/devices/system/cpu/cpu0/cache/index*; do
	[ "$(first "$index/type")" = Instruction ] && continue
	size=$(first "$index/size")
	case $size in
	*K) size=$((${size%K} * 1024)) ;;
	*M) size=$((${size%M} * 1048576)) ;;
	esac
	say "cache_l$(first "$index/level")_bytes" "$size"
done
{
	while read -r key value unit; do
		case $key in
		MemTotal:) say memory_total_bytes $((value * 1024)) ;;
		MemAvailable:) say memory_available_bytes $((value * 1024)) ;;
		HugePages_Total:) say hugepages_total "$value" ;;
		HugePages_Free:) say hugepages_free "$value" ;;
		Hugepagesize:) say hugepage_bytes $((value * 1024)) ;;
		esac
	done </proc/meminfo
} 2>/dev/null
say transparent_hugepages "$(sed -n 's/.*\[\(.*\)\].*/\1/p' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null)"
say governor "$(first /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor)"
say cpu_lowest_khz "$(first /sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_min_freq)"
say cpu_highest_khz "$(first /sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq)"
say turbo_off "$(first /sys/devices/system/cpu/intel_pstate/no_turbo)"
say smt "$(first /sys/devices/system/cpu/smt/control)"
say thread_siblings "$(cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list 2>/dev/null | sort -u | tr '\n' ' ')"
# Memory that two processes can share: that of memfd_create, which is there with tmpfs, or a tmpfs at /dev/shm.
if grep -qw tmpfs /proc/filesystems 2>/dev/null || [ -w /dev/shm ]; then say shared_memory yes; else say shared_memory no; fi
say autogroup "$(setting kernel/sched_autogroup_enabled)"
say realtime_runtime_us "$(setting kernel/sched_rt_runtime_us)"
say bpf_jit "$(setting net/core/bpf_jit_enable)"
set -- $(first /proc/loadavg)
say load_average "$1"
set -- $(first /proc/stat)
say steal_ticks "$9"
say total_ticks "$(($2 + $3 + $4 + $5 + $6 + $7 + $8 + $9))"
[ "$asked" = now ] && exit 0
say user "$(id -u)"
if command -v chrt >/dev/null 2>&1 && chrt -f 1 true 2>/dev/null; then say realtime yes; else say realtime no; fi
limit=$(command -v timeout) && limit="$limit 10"
compiler=$(command -v "${CC:-cc}") && { say cc_version "$($limit "$compiler" --version 2>/dev/null | head -n 1)" || say cc_fault "$compiler"; }
command -v pkg-config >/dev/null 2>&1 && say pkg_config_version "$(pkg-config --version)" &&
	dpdk=$(pkg-config --modversion libdpdk 2>/dev/null) && say dpdk_version "$dpdk"
clang=$(command -v clang) && say clang_version "$("$clang" --version 2>/dev/null | head -n 1)"
say libbpf_version "$(pkg-config --modversion libbpf 2>/dev/null)"
# CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or CAP_SYS_ADMIN, which has them all.
capabilities=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
if [ $((0x${capabilities:-0} >> 21 & 1)) = 1 ] || [ $((0x${capabilities:-0} >> 38 & 0x${capabilities:-0} >> 39 & 0x${capabilities:-0} >> 12 & 1)) = 1 ]; then
	say bpf_allowed yes
else
	say bpf_allowed no
fi
case ${XDG_CACHE_HOME:-} in /*) cache=$XDG_CACHE_HOME ;; *) cache=$HOME/.cache ;; esac
headers=$cache/p4perf/dpdk-$dpdk
[ -s "$headers/rte_swx_pipeline_internal.h" ] && say dpdk_source_headers "$headers"
for tool in p4test p4c-bm2-ss p4c-dpdk p4c-ebpf simple_switch simple_switch_CLI luajit valgrind perf clang bpftool MoonGen pos ip; do
	place=$(command -v "$tool") && say "tool_$(printf '%s' "$tool" | tr 'A-Z-' 'a-z_')" "$place"
done
# The Netronome SDK, on the PATH or where it installs itself, and the card.
netronome() {
	for place in "$(command -v "$1" 2>/dev/null)" "/opt/netronome/p4/bin/$1" "/opt/netronome/bin/$1"; do
		[ -x "$place" ] && printf '%s\n' "$place" && return
	done
}
for tool in nfp4build rtecli nfp-hwinfo; do
	say "tool_$(printf '%s' "$tool" | tr - _)" "$(netronome "$tool")"
done
nfp4build=$(netronome nfp4build)
[ -n "$nfp4build" ] && say nfp4build_checksum "$(cksum <"$nfp4build" | tr ' ' -)" &&
	say nfp_sdk_version "$(readlink -f "$nfp4build" | sed -n 's|.*/nfp-sdk-\([0-9][^/]*\)/.*|\1|p')"
hwinfo=$(netronome nfp-hwinfo)
[ -n "$hwinfo" ] && assembly=$(timeout 10 "$hwinfo" 2>/dev/null) &&
	say nfp_model "$(printf '%s\n' "$assembly" | sed -n 's/^assembly\.model=//p' | head -n 1)" &&
	say nfp_partno "$(printf '%s\n' "$assembly" | sed -n 's/^assembly\.partno=//p' | head -n 1)"
command -v p4c-dpdk >/dev/null 2>&1 &&
	say p4c_version "$(p4c-dpdk --version 2>&1 | sed -n 's/^Version //p' | head -n 1)"
command -v p4c-ebpf >/dev/null 2>&1 &&
	say p4c_ebpf_version "$(p4c-ebpf --version 2>&1 | sed -n 's/^Version //p' | head -n 1)"
command -v p4c-bm2-ss >/dev/null 2>&1 &&
	say p4c_bm2_version "$(p4c-bm2-ss --version 2>&1 | sed -n 's/^Version //p' | head -n 1)"
command -v simple_switch >/dev/null 2>&1 && say bmv2_version "$(simple_switch --version 2>/dev/null | head -n 1)"
command -v unshare >/dev/null 2>&1 && unshare --net true 2>/dev/null && say namespaces yes
# Checkouts of t4p4s and p4c: absolute paths in variables. Tools that t4p4s.sh calls without checking for them.
commit() { git -c safe.directory='*' -C "$1" rev-parse HEAD 2>/dev/null; }
case ${T4P4S:-} in
/*)
	if [ -f "$T4P4S/src/compiler.py" ]; then
		say tool_t4p4s "$T4P4S"
		changed=$(git -c safe.directory='*' -C "$T4P4S" diff HEAD 2>/dev/null)
		say t4p4s_commit "$(commit "$T4P4S")${changed:++$(printf '%s' "$changed" | cksum | cut -d ' ' -f 1)}"
		[ -f "$T4P4S/src/hlir16/hlir.py" ] && say hlir16_commit "$(commit "$T4P4S/src/hlir16")"
		python=$(command -v "${PYTHON3:-python3}") && say t4p4s_python "$python"
		say t4p4s_lacks "$(
			for tool in bash python3 sudo which netcat lsof netstat killall shuf ccache ninja flock; do
				command -v "$tool" >/dev/null 2>&1 || printf '%s ' "$tool"
			done
			[ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null || printf 'root '
			for module in mesonbuild more_itertools; do
				"$python" -c "import importlib.util as i; exit(not i.find_spec('$module'))" 2>/dev/null ||
					printf "Python's-%s " "$module"
			done
		)"
	fi
	;;
esac
case ${P4C:-} in
/*)
	if [ -x "$P4C/build/p4test" ]; then
		say tool_p4c "$P4C"
		say p4test_version "$("$P4C/build/p4test" --version 2>&1 | sed -n 's/^Version //p' | head -n 1)"
	fi
	;;
esac
exit 0

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trial of one point: share memory with a second process, check packets, measure, print one line of JSON. Exit status:
 * 0 measured, 1 anything else; the line then has a key "error".
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/memfd.h>

#include "vio.h"
#include "words.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HUGEPAGE_BYTES ((size_t)2 << 20)
#define STACK_BYTES ((size_t)1 << 20)
#define PAGE_BYTES ((size_t)4096)

struct options {
	int host_cpu, function_cpu; /* -1: the last two that are allowed */
	bool hugepages;
	uint64_t seed;
	uint64_t packets; /* packets to send, taking turns, without measuring; 0: measure */
	bool processes;   /* two processes take turns; else both sides are in this one */
	struct measure_options measure;
};

#define AT(field) .offset = offsetof(struct options, field)

static const struct rule rules[] = {
	{"host-cpu", RULE_INT, AT(host_cpu), 0, CPU_SETSIZE - 1},
	{"function-cpu", RULE_INT, AT(function_cpu), 0, CPU_SETSIZE - 1},
	{"hugepages", RULE_ON, AT(hugepages)},
	{"seed", RULE_UINT64, AT(seed), 0, 1e15},
	{"packets", RULE_UINT64, AT(packets), 1, 1e12},
	{"processes", RULE_ON, AT(processes)},
	{"windows", RULE_UINT, AT(measure.windows), 1, MAX_WINDOWS},
	{"window-packets", RULE_UINT, AT(measure.packets), 1, 1e8},
	{"timeout-ms", RULE_UINT, AT(measure.timeout_ms), 1, 3600000},
	{"warmup-ms", RULE_UINT, AT(measure.warmup_ms), 0, 600000},
	{"gate-ratio", RULE_REAL, AT(measure.gate_ratio), 0.001, 1000},
	{"plain", RULE_OFF, AT(measure.gated)},
	{0},
};

static void
parse_options(struct options *o, int argc, char **argv)
{
	*o = (struct options){.host_cpu = -1, .function_cpu = -1, .seed = 1};
	o->measure = (struct measure_options){
		.gated = P4PERF_HAVE_GATE,
		.gate_tolerance = 0.05,
		.drift_tolerance = 0.05,
		.windows = 40,
		.packets = 8192,
		.burst_us = 15000,
		.gap_us = 3000,
		.timeout_ms = 2500,
		.warmup_ms = 10,
		.realtime_priority = 50,
	};
	read_options(rules, o, argc, argv);
}

/* The two CPUs, where they were not named: the last ones, since interrupts prefer the first. */
static void
choose_cpus(struct options *o)
{
	cpu_set_t allowed;
	int cpu, chosen[2] = {-1, -1};

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed)) {
			chosen[0] = chosen[1];
			chosen[1] = cpu;
		}
	if (o->function_cpu == -1)
		o->function_cpu = chosen[1];
	if (o->host_cpu == -1)
		o->host_cpu = chosen[0];
	if (o->host_cpu == -1 || o->host_cpu == o->function_cpu)
		fail("refused", "host and network function need a CPU each, and this process may use one");
}

static void
pin(int cpu, const char *who)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		fail("refused", "the %s cannot run on CPU %d: %s", who, cpu, strerror(errno));
}

/* Memory of no file that child processes share; NULL and errno if there is none. */
static void *
shared_memory(size_t bytes, bool hugepages)
{
	int file = memfd_create("vio", MFD_CLOEXEC | (hugepages ? MFD_HUGETLB | MFD_HUGE_2MB : 0));
	void *memory;

	if (file == -1 && !hugepages)
		file = open("/dev/shm", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (file == -1)
		return NULL;
	/* Reserved now: a page that cannot be had later would be a signal. */
	errno = posix_fallocate(file, 0, (off_t)bytes);
	memory = errno != 0 ? MAP_FAILED
			    : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
	close(file);
	return memory == MAP_FAILED ? NULL : memory;
}

/*
 * The function ended, and not because it was told to: there is no result. If it said why, that is on its way; if it was
 * killed, this says so.
 */
static void
function_ended(int signal_number)
{
	static const char killed[] = "{\"error\": \"the network function was killed\", \"kind\": \"function\"}\n";
	siginfo_t info = {0};

	(void)signal_number;
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 || info.si_status == 0)
		return;
	if (info.si_code != CLD_EXITED && write(STDOUT_FILENO, killed, sizeof(killed) - 1) == -1)
		_exit(2);
	_exit(1);
}

static pid_t
start_function(void *memory, size_t bytes, const struct options *o, struct turns *host_turns)
{
	struct turns turns = NO_TURNS;
	int to_function[2], to_host[2];
	pid_t child;

	*host_turns = turns;
	if (o->packets != 0) {
		if (pipe(to_function) != 0 || pipe(to_host) != 0)
			fail("memory", "no pipes: %s", strerror(errno));
		*host_turns = (struct turns){to_function[1], to_host[0], NULL, NULL};
		turns = (struct turns){to_host[1], to_function[0], NULL, NULL};
	}
	signal(SIGCHLD, function_ended);
	child = fork();
	if (child == -1)
		fail("memory", "the network function cannot be started: %s", strerror(errno));
	if (child == 0) {
		const pid_t parent = getppid();
		struct function *function;

		signal(SIGCHLD, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_Exit(1);
		if (turns.to != -1) {
			close(host_turns->to);
			close(host_turns->from);
		}
		pin(o->function_cpu, "network function");
		/* The pages are there, but not yet in the tables of this process; older kernels do that on first use. */
		madvise(memory, bytes, MADV_POPULATE_WRITE);
		function = function_create(memory, &turns, o->seed);
		if (function == NULL)
			fail("memory", "no memory for the network function");
		function_main(function, memory, &turns);
		_Exit(0);
	}
	if (turns.to != -1) {
		close(turns.to);
		close(turns.from);
	}
	return child;
}

static struct {
	ucontext_t host, function;
	struct function *state;
	struct control *control;
	struct turns turns;
} together;

static void
run_function(void)
{
	function_main(together.state, together.control, &together.turns);
}

/* The function as a second context of this process, which takes turns with the host. */
static void
start_beside(void *memory, const struct options *o, struct turns *host_turns)
{
	char *stack = malloc(STACK_BYTES);

	together.turns = (struct turns){-1, -1, &together.function, &together.host};
	*host_turns = (struct turns){-1, -1, &together.host, &together.function};
	together.control = memory;
	together.state = function_create(memory, &together.turns, o->seed);
	if (stack == NULL || together.state == NULL || getcontext(&together.function) != 0)
		fail("memory", "no memory for the network function");
	together.function.uc_stack.ss_sp = stack;
	together.function.uc_stack.ss_size = STACK_BYTES;
	together.function.uc_link = &together.host;
	makecontext(&together.function, run_function, 0);
}

/* Packets with contents to their end; then compare what the function says that it read. */
static uint64_t
check(struct host *host, struct control *control, const struct turns *turns)
{
	const uint64_t packets = 4 * vio_sizes.queue + 1000, before = host_received(host);
	uint64_t witness, body_witness, unchecked;
	char error[256];

	host_expected(host, &witness, &body_witness);
	unchecked = control->body_witness - body_witness;
	command_begin(control, COMMAND_RUN, 0);
	if (!host_check(host, packets, error, sizeof(error)))
		fail("verify", "%s", error);
	command(control, turns, COMMAND_CONDITION, 0);
	host_expected(host, &witness, &body_witness);
	if (control->witness != witness)
		fail("verify", "the network function read other virtio headers than the host wrote");
	if (control->body_witness - unchecked != body_witness)
		fail("verify", "the network function read other packets than the host wrote");
	return host_received(host) - before;
}

enum quantity { PREEMPTIONS, CHAIN, MIX, INSTRUCTIONS, L1, LLC };

static double
value_of(const struct condition side[2], enum quantity quantity, int when, double packets)
{
	switch (quantity) {
	case PREEMPTIONS:
		return (double)(side[1].preemptions - side[0].preemptions);
	case CHAIN:
		return side[when].calibration.chain_tsc;
	case MIX:
		return side[when].calibration.mix_tsc;
	case INSTRUCTIONS:
		return (double)(side[1].counters.instructions - side[0].counters.instructions) / packets;
	case L1:
		return (double)(side[1].counters.l1_misses - side[0].counters.l1_misses) / packets;
	default:
		return (double)(side[1].counters.llc_misses - side[0].counters.llc_misses) / packets;
	}
}

#define VALUE(key, side, quantity, when)                                        \
	static double key(const void *window)                                   \
	{                                                                       \
		const struct window *const w = window;                          \
                                                                                \
		return value_of(w->side, quantity, when, w->span_packets);      \
	}

VALUE(window_preemptions, function, PREEMPTIONS, 0)
VALUE(window_chain_before_tsc, function, CHAIN, 0)
VALUE(window_mix_before_tsc, function, MIX, 0)
VALUE(window_chain_after_tsc, function, CHAIN, 1)
VALUE(window_mix_after_tsc, function, MIX, 1)
VALUE(window_peer_preemptions, host, PREEMPTIONS, 0)
VALUE(window_peer_chain_before_tsc, host, CHAIN, 0)
VALUE(window_peer_mix_before_tsc, host, MIX, 0)
VALUE(window_peer_chain_after_tsc, host, CHAIN, 1)
VALUE(window_peer_mix_after_tsc, host, MIX, 1)
VALUE(window_function_instructions, function, INSTRUCTIONS, 0)
VALUE(window_function_l1_misses, function, L1, 0)
VALUE(window_function_llc_misses, function, LLC, 0)
VALUE(window_host_instructions, host, INSTRUCTIONS, 0)
VALUE(window_host_l1_misses, host, L1, 0)
VALUE(window_host_llc_misses, host, LLC, 0)

static double
window_program(const void *window)
{
	(void)window;
	return 0;
}

static double
window_tsc_per_packet(const void *window)
{
	return ((const struct window *)window)->tsc_per_packet;
}

static const struct column columns[] = {
	{"program", "%.0f", window_program},
	{"tsc_per_packet", "%.4f", window_tsc_per_packet},
	{"preemptions", "%.6g", window_preemptions},
	{"chain_before_tsc", "%.6g", window_chain_before_tsc},
	{"mix_before_tsc", "%.6g", window_mix_before_tsc},
	{"chain_after_tsc", "%.6g", window_chain_after_tsc},
	{"mix_after_tsc", "%.6g", window_mix_after_tsc},
	{"peer_preemptions", "%.6g", window_peer_preemptions},
	{"peer_chain_before_tsc", "%.6g", window_peer_chain_before_tsc},
	{"peer_mix_before_tsc", "%.6g", window_peer_mix_before_tsc},
	{"peer_chain_after_tsc", "%.6g", window_peer_chain_after_tsc},
	{"peer_mix_after_tsc", "%.6g", window_peer_mix_after_tsc},
	{0},
};

/* Where there are hardware counters. */
static const struct column counter_columns[] = {
	{"function_instructions", "%.6g", window_function_instructions},
	{"function_l1_misses", "%.6g", window_function_l1_misses},
	{"function_llc_misses", "%.6g", window_function_llc_misses},
	{"host_instructions", "%.6g", window_host_instructions},
	{"host_l1_misses", "%.6g", window_host_l1_misses},
	{"host_llc_misses", "%.6g", window_host_llc_misses},
	{0},
};

static void
print_result(const struct options *o, const struct measurement *m, uint64_t verified, uint64_t packets)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("{\"harness_version\": 1, \"programs\": [\"vio\"], \"tsc_hz\": %.0f, \"chain_core_cycles\": %g", m->tsc_hz,
	       CHAIN_CORE_CYCLES);
	printf(", \"gated\": %s, \"gate_ratio\": %.5f, \"gate_tolerance\": %g, \"drift_tolerance\": %g",
	       o->measure.gated ? "true" : "false", m->gate_ratio, o->measure.gate_tolerance,
	       o->measure.drift_tolerance);
	printf(", \"realtime\": %s, \"hugepages\": %s, \"timed_out\": %s", m->realtime ? "true" : "false",
	       o->hugepages ? "true" : "false", m->timed_out ? "true" : "false");
	printf(", \"host_cpu\": %d, \"function_cpu\": %d, \"window_packets\": %u", o->host_cpu, o->function_cpu,
	       o->measure.packets);
	printf(", \"packets\": %lu, \"verified_packets\": %lu, \"memory_bytes\": %zu, \"peak_rss_bytes\": %lu", packets,
	       verified, vio_sizes.shared_bytes + vio_sizes.private_bytes, usage.ru_maxrss * 1024);
	printf(", \"windows\": {\"n\": %u", m->n_windows);
	print_columns(columns, m->windows, sizeof(*m->windows), m->n_windows);
	if (m->counters)
		print_columns(counter_columns, m->windows, sizeof(*m->windows), m->n_windows);
	printf("}}\n");
}

/* Send a number of packets, taking turns, to be counted from outside. */
static void
simulate(struct host *host, struct control *control, const struct turns *turns, uint64_t packets, pid_t function)
{
	struct requests requests;

	command_begin(control, COMMAND_RUN, 0);
	if (!host_stream(host, packets) || !host_drain(host))
		fail("function", "packets do not come back any more");
	command(control, turns, COMMAND_CONDITION, 0);
	requests = host_requests(host);
	printf("{\"packets\": %lu, \"host_pid\": %d, \"function_pid\": %d", host_received(host), (int)getpid(),
	       (int)function);
	printf(", \"host_fetched\": %lu, \"host_upgraded\": %lu, \"function_fetched\": %lu, "
	       "\"function_upgraded\": %lu}\n",
	       requests.fetched, requests.upgraded, control->requests.fetched, control->requests.upgraded);
}

int
main(int argc, char **argv)
{
	static struct options options;
	struct measurement measurement = {0};
	struct turns turns;
	struct control *control;
	struct host *host;
	uint64_t verified = 0, before, packets = 0;
	size_t page, bytes;
	void *memory;
	pid_t function = 0;
	int result, status;

	parse_options(&options, argc, argv);
	choose_cpus(&options);
	signal(SIGPIPE, SIG_IGN);
	page = options.hugepages ? HUGEPAGE_BYTES : PAGE_BYTES;
	bytes = (vio_sizes.shared_bytes + page - 1) / page * page;
	memory = shared_memory(bytes, options.hugepages);
	if (memory == NULL)
		fail("refused", "there is no shared memory of %zu B%s: %s", vio_sizes.shared_bytes,
		     options.hugepages ? " in hugepages" : "", strerror(errno));
	control = memory;
	if (options.packets != 0 && !options.processes)
		start_beside(memory, &options, &turns);
	else
		function = start_function(memory, bytes, &options, &turns);
	pin(options.host_cpu, "host");
	host = host_create(memory, &turns, options.hugepages, options.seed);
	if (host == NULL)
		fail("memory", "no memory of %zu B for the buffers of the host", vio_sizes.private_bytes);
	if (options.packets != 0) {
		simulate(host, control, &turns, options.packets, function);
	} else {
		verified = check(host, control, &turns);
		before = host_received(host);
		result = measure(host, control, &options.measure, &measurement);
		if (result != 0)
			fail("memory", "no memory for windows: %s", strerror(-result));
		packets = host_received(host) - before;
		verified += check(host, control, &turns);
	}
	command(control, &turns, COMMAND_STOP, 0);
	if (function != 0 &&
	    (waitpid(function, &status, 0) != function || !WIFEXITED(status) || WEXITSTATUS(status) != 0))
		fail("function", "the network function died");
	if (options.packets == 0)
		print_result(&options, &measurement, verified, packets);
	return 0;
}

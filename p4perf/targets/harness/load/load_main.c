/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversation: load is offered as lines of the standard input say, and every answer is one line of JSON.
 *
 * Arguments: "load", options of the EAL of the generator, "--", those of the device where it is a process of its own, "--",
 * words KEY=VALUE of the link, "--", and the point as in a trial. With command=1 the device is another program, and what
 * is between the first two "--" is its command line.
 */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "load.h"
#include "options.h"

#define MAX_WORDS 32
#define MAX_SIZES 4096

struct arguments {
	unsigned int slots, pool, start_ms;
	int priority;
	const char *sizes;
	const char *frames; /* file of frames that are sent in turn; NULL: those of the source */
	const char *port; /* name of the port in both processes; NULL: rings in one process */
	bool veth;        /* between namespaces */
	unsigned int mtu; /* of it */
	bool command;     /* the device is another program */
	bool unstamped;   /* no stamp is written into the frames */
};

static struct options options;
static struct source source;
static struct generator generator;
static struct device *device;
static uint16_t sizes[MAX_SIZES];

static double
value(const char *word, double low, double high)
{
	const char *const text = strchr(word, '=') + 1;
	char *end;
	const double result = strtod(text, &end);

	if (*text == '\0' || *end != '\0' || !(result >= low && result <= high))
		fail("usage", "%s: not a number from %g to %g", word, low, high);
	return result;
}

static bool
is(const char *word, const char *key)
{
	const size_t n = strlen(key);

	return strncmp(word, key, n) == 0 && word[n] == '=';
}

static void
parse_link(struct arguments *a, char **words, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (is(words[i], "slots"))
			a->slots = (unsigned int)value(words[i], 32, 32768);
		else if (is(words[i], "pool"))
			a->pool = (unsigned int)value(words[i], 1024, 1 << 20);
		else if (is(words[i], "priority"))
			a->priority = (int)value(words[i], 0, 99);
		else if (is(words[i], "start_ms"))
			a->start_ms = (unsigned int)value(words[i], 1, 1e8);
		else if (is(words[i], "port"))
			a->port = strchr(words[i], '=') + 1;
		else if (is(words[i], "veth"))
			a->veth = value(words[i], 0, 1) != 0;
		else if (is(words[i], "mtu"))
			a->mtu = (unsigned int)value(words[i], 68, 65535);
		else if (is(words[i], "command"))
			a->command = value(words[i], 0, 1) != 0;
		else if (is(words[i], "stamped"))
			a->unstamped = value(words[i], 0, 1) == 0;
		else if (is(words[i], "frames"))
			a->frames = strchr(words[i], '=') + 1;
		else if (is(words[i], "sizes"))
			a->sizes = strchr(words[i], '=') + 1;
		else
			fail("usage", "%s is no word of a link", words[i]);
	}
}

/* Frame lengths without FCS in the order in which they are sent, separated by commas. */
static void
parse_sizes(const char *text, uint16_t longest)
{
	char *end;

	for (; text != NULL && *text != '\0'; text = *end == ',' ? end + 1 : end) {
		const unsigned long size = strtoul(text, &end, 10);

		if (end == text || size < sizeof(struct stamp) || size > longest || generator.n_sizes == MAX_SIZES)
			fail("usage", "sizes: %s is no list of frame lengths up to %u", text, longest);
		sizes[generator.n_sizes++] = (uint16_t)size;
	}
	generator.sizes = generator.n_sizes != 0 ? sizes : NULL;
}

static bool
read_all(FILE *file, void *destination, size_t size)
{
	return fread(destination, 1, size, file) == size;
}

/* u32 frames; of each u64 gap to the next in ns, u16 length, its bytes. */
static void
read_frames(const char *path)
{
	static struct frames frames;
	FILE *const file = fopen(path, "rb");
	uint32_t i;

	if (file == NULL || !read_all(file, &frames.n, sizeof(frames.n)) || frames.n == 0)
		fail("usage", "%s holds no frames", path);
	frames.lengths = calloc(frames.n, sizeof(*frames.lengths));
	frames.data = calloc(frames.n, sizeof(*frames.data));
	frames.gaps_ns = calloc(frames.n, sizeof(*frames.gaps_ns));
	if (frames.lengths == NULL || frames.data == NULL || frames.gaps_ns == NULL)
		fail("memory", "no memory for %u frames", frames.n);
	for (i = 0; i < frames.n; i++) {
		if (!read_all(file, &frames.gaps_ns[i], sizeof(frames.gaps_ns[i])) ||
		    !read_all(file, &frames.lengths[i], sizeof(frames.lengths[i])) ||
		    frames.lengths[i] < sizeof(struct stamp) || frames.lengths[i] > 2048)
			fail("usage", "%s is damaged at frame %u", path, i);
		frames.data[i] = malloc(frames.lengths[i]);
		if (frames.data[i] == NULL)
			fail("memory", "no memory for %u frames", frames.n);
		if (!read_all(file, frames.data[i], frames.lengths[i]))
			fail("usage", "%s is damaged at frame %u", path, i);
	}
	fclose(file);
	generator.frames = &frames;
}

static void
parse_offer(struct offer *o, char **words, int n)
{
	static const char *const modes[] = {"program", "baseline", "null", "faulty"};
	static const char *const patterns[] = {"cbr", "poisson", "burst", "recorded"};
	unsigned int k;
	int i;

	*o = (struct offer){.duration_ms = 100, .segment_ms = 200, .rest_ms = 10, .gap_threshold_us = 50};
	for (i = 0; i < n; i++) {
		const char *const text = strchr(words[i], '=') != NULL ? strchr(words[i], '=') + 1 : "";

		if (is(words[i], "rate_pps"))
			o->schedule.rate_pps = value(words[i], 0, 1e9);
		else if (is(words[i], "duration_ms"))
			o->duration_ms = value(words[i], 0.01, 1e7);
		else if (is(words[i], "segment_ms"))
			o->segment_ms = value(words[i], 0.01, 10000);
		else if (is(words[i], "rest_ms"))
			o->rest_ms = value(words[i], 0, 10000);
		else if (is(words[i], "gap_threshold_us"))
			o->gap_threshold_us = value(words[i], 0.1, 1e6);
		else if (is(words[i], "latency"))
			o->latency = value(words[i], 0, 1) != 0;
		else if (is(words[i], "seed"))
			o->schedule.seed = (uint64_t)value(words[i], 0, 9007199254740992.0);
		else if (is(words[i], "burst"))
			o->schedule.burst_packets = (uint32_t)value(words[i], 1, 1e6);
		else if (is(words[i], "burst_gap_us"))
			o->schedule.burst_gap_us = value(words[i], 0, 1e7);
		else if (is(words[i], "burst_spacing_ns"))
			o->schedule.burst_spacing_ns = value(words[i], 0, 1e9);
		else if (is(words[i], "lose"))
			o->faults.lose = (uint64_t)value(words[i], 0, 1e15);
		else if (is(words[i], "duplicate"))
			o->faults.duplicate = (uint64_t)value(words[i], 0, 1e15);
		else if (is(words[i], "swap"))
			o->faults.swap = (uint64_t)value(words[i], 0, 1e15);
		else if (is(words[i], "pattern")) {
			for (k = 0; k < RTE_DIM(patterns) && strcmp(text, patterns[k]) != 0; k++)
				;
			if (k == RTE_DIM(patterns))
				fail("usage", "there is no pattern %s", text);
			o->schedule.pattern = (int)k;
		} else if (is(words[i], "device")) {
			for (k = 0; k < RTE_DIM(modes) && strcmp(text, modes[k]) != 0; k++)
				;
			if (k == RTE_DIM(modes))
				fail("usage", "there is no device %s", text);
			o->mode = (enum device_mode)k;
		} else {
			fail("usage", "%s is no word of an offer", words[i]);
		}
	}
	if (generator.frames != NULL) {
		o->schedule.gaps_ns = generator.frames->gaps_ns;
		o->schedule.n_gaps = generator.frames->n;
	} else if (o->schedule.pattern == SPACED_RECORDED) {
		fail("usage", "there are no recorded gaps");
	}
	if (o->schedule.pattern != SPACED_CBR && o->schedule.pattern != SPACED_RECORDED && o->schedule.rate_pps == 0 && o->schedule.burst_gap_us == 0)
		fail("usage", "the pattern needs a rate");
	if (o->duration_ms / o->segment_ms > MAX_SEGMENTS)
		fail("usage", "%g ms are more than %d segments of %g ms", o->duration_ms, MAX_SEGMENTS, o->segment_ms);
}

static void
converse(void)
{
	static char line[4096];
	char *words[MAX_WORDS], *word, *rest;
	struct offer offer;
	int n;

	while (fgets(line, sizeof(line), stdin) != NULL) {
		for (n = 0, word = strtok_r(line, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
			if (n == MAX_WORDS)
				fail("usage", "more than %d words", MAX_WORDS);
			words[n++] = word;
		}
		if (n == 0)
			continue;
		if (strcmp(words[0], "offer") != 0)
			fail("usage", "%s is no order", words[0]);
		parse_offer(&offer, words + 1, n - 1);
		generator_offer(&generator, &offer);
		generator_print(&generator, &offer);
	}
}

static int
serve(void *context)
{
	device_serve(context);
	return 0;
}

/* The arguments before the next "--". */
static int
until_dashes(int argc, char **argv)
{
	int i;

	for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		;
	if (i == argc)
		fail("usage", "the arguments of EAL, link and point are separated by --");
	return i;
}

static void
start_eal(int argc, char **argv)
{
	if (rte_eal_init(argc, argv) < 0)
		fail("eal", "the DPDK environment did not start: %s", rte_strerror(rte_errno));
}

/*
 * Buffers in any order, as they are after some traffic: in the order of their addresses, in which a new pool has them, the
 * processor would fetch the next one ahead, and the first trials would be faster than all others.
 */
static void
shuffle(struct rte_mempool *pool, unsigned int n)
{
	struct rte_mbuf **const buffers = calloc(n, sizeof(*buffers)), *other;
	uint64_t state = 1;
	unsigned int i, k;

	if (buffers == NULL || rte_mempool_get_bulk(pool, (void **)buffers, n) != 0)
		fail("memory", "no memory to shuffle the packet pool");
	for (i = n - 1; i > 0; i--) {
		state = state * UINT64_C(6364136223846793005) + 1;
		k = (unsigned int)((state >> 33) % (i + 1));
		other = buffers[i];
		buffers[i] = buffers[k];
		buffers[k] = other;
	}
	rte_mempool_put_bulk(pool, (void **)buffers, n);
	free(buffers);
}

static struct rte_mempool *
pool_of(const char *name, unsigned int n)
{
	struct rte_mempool *const pool = load_pool(name, n);

	if (pool == NULL)
		fail("memory", "no memory for the packet pool: %s", rte_strerror(rte_errno));
	shuffle(pool, n);
	return pool;
}

static void
set_up_program(struct rte_mempool *pool)
{
	char error[256];
	int result;

	result = program_under_test.setup(options.entries);
	if (result != 0)
		fail("memory", "the tables could not be created or filled: %s", rte_strerror(-result));
	result = program_baseline.setup(NULL);
	if (result != 0)
		fail("memory", "the baseline could not be set up: %s", rte_strerror(-result));
	if (options.verify_path != NULL && verify_file(&program_under_test, pool, options.verify_path, error,
						       sizeof(error), &device->verified) != 0)
		fail("verify", "%s", error);
}

static void
set_up_source(const struct arguments *a, struct rte_mempool *pool)
{
	const int result = source_init(&source, pool, &options.traffic);

	if (result != 0)
		fail("usage", "the frame and its key do not fit together: %s", rte_strerror(-result));
	parse_sizes(a->sizes, options.traffic.frame_length);
	if (a->frames != NULL)
		read_frames(a->frames);
	generator.source = &source;
	generator.device = device;
	generator.priority = a->priority;
	generator.unstamped = a->unstamped;
	if (generator_init(&generator) != 0)
		fail("memory", "no memory to account for packets");
}

static void
check_link(int result)
{
	if (result != 0)
		fail("link", "the link could not be set up: %s", strerror(-result));
}

/* Whether the counter that all times come from runs at one rate, whatever the cores do. */
static bool
invariant_tsc(void)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
	return true; /* the generic timer of aarch64 */
#endif
}

/* Generator and device as threads of this process. */
static void
start_thread(const struct arguments *a, int argc, char **eal)
{
	struct rte_mempool *pool;
	unsigned int worker;

	start_eal(argc, eal);
	pool = pool_of("packets", a->pool);
	set_up_program(pool);
	set_up_source(a, pool);
	check_link(link_rings(a->slots, pool, &generator.port, &device->port));
	worker = rte_get_next_lcore(-1, 1, 0);
	if (worker == RTE_MAX_LCORE)
		fail("usage", "generator and device under test need a core each");
	rte_eal_remote_launch(serve, device, worker);
	device->ready = true;
}

/* Become another program, which gets the place of the memory that device and generator share. */
static __attribute__((noreturn)) void
run_command(int argc, char **argv)
{
	char memory[16], **const words = calloc((size_t)argc + 2, sizeof(*words));

	if (words == NULL || argc < 2)
		fail("usage", "there is no command of a device");
	snprintf(memory, sizeof(memory), "%d", device->memory);
	memcpy(words, argv + 1, (size_t)(argc - 1) * sizeof(*words));
	words[argc - 1] = (char *)"--device";
	words[argc] = memory;
	execv(words[0], words);
	fail("device", "%s cannot be started: %s", words[0], strerror(errno));
}

/* What becomes of the child: a device that serves until its parent has gone. */
static __attribute__((noreturn)) void
be_device(const struct arguments *a, int argc, char **eal, int parent)
{
	struct rte_mempool *pool;
	char moved;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	close(device->wake[1]);
	if (a->veth) {
		veth_device();
		if (write(device->moved[1], "", 1) != 1 || read(device->wake[0], &moved, 1) != 1)
			_exit(1);
		veth_device_up();
	}
	if (a->command)
		run_command(argc, eal);
	start_eal(argc, eal);
	pool = pool_of("packets", a->pool);
	set_up_program(pool);
	check_link(link_port(a->port, a->slots, pool, &device->port));
	device->ready = true;
	device_serve(device);
	_exit(0);
}

/* Generator and device as two processes. */
static void
start_process(const struct arguments *a, int argc, char **eal, int device_argc, char **device_eal)
{
	const int parent = getpid();
	int child;
	char there;

	if (a->veth && pipe(device->moved) != 0)
		fail("link", "no pipe: %s", strerror(errno));
	fflush(stdout);
	child = fork();
	if (child < 0)
		fail("link", "no process for the device under test: %s", strerror(errno));
	if (child == 0)
		be_device(a, device_argc, device_eal, parent);
	device->pid = child;
	close(device->wake[0]);
	if (a->veth) {
		close(device->moved[1]);
		if (read(device->moved[0], &there, 1) != 1)
			_exit(1);
		veth_generator(child, a->mtu);
		if (write(device->wake[1], "", 1) != 1)
			_exit(1);
	}
	/* Shared memory has a client, which asks once, and a server, which has to be there by then: the device. */
	device_await_ready(device, a->start_ms);
	start_eal(argc, eal);
	/* What is sent and what is received have pools of their own: frames that wait to be sent are filled once. */
	set_up_source(a, pool_of("packets", a->pool));
	check_link(link_port(a->port, a->slots, pool_of("received", a->pool), &generator.port));
	check_link(link_await_up(generator.port));
}

/* The device is in memory that another program can have as well. */
static void
share_device(void)
{
	const int memory = memfd_create("device", 0);

	if (memory < 0 || ftruncate(memory, sizeof(*device)) != 0)
		fail("memory", "no memory for the device under test: %s", strerror(errno));
	device = mmap(NULL, sizeof(*device), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (device == MAP_FAILED || pipe(device->wake) != 0)
		fail("memory", "no memory or pipe for the device under test: %s", strerror(errno));
	device->memory = memory;
}

/* argv: "load", EAL of the generator, "--", EAL of the device, "--", words of the link, "--", the point. */
int
load_main(int argc, char **argv)
{
	struct arguments a = {.slots = 1024, .pool = 8191, .priority = 50, .start_ms = 30000, .mtu = 9000};
	char **eal = argv, **device_eal;
	int n, eal_argc, device_argc;

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	eal_argc = until_dashes(argc, argv);
	argv[eal_argc] = NULL;
	argv += eal_argc; /* in the place of "--" the EAL of the device finds its program name */
	argc -= eal_argc;
	argv[0] = eal[0];
	device_eal = argv;
	device_argc = 1 + until_dashes(argc - 1, argv + 1);
	argv += device_argc + 1;
	argc -= device_argc + 1;
	n = until_dashes(argc, argv);
	parse_link(&a, argv, n);
	parse_options(&options, argc - n, argv + n);
	if (options.traffic.frame_length < sizeof(struct stamp))
		fail("usage", "a frame of %u bytes has no room for a stamp", options.traffic.frame_length);

	share_device();
	device->priority = a.priority;
	if (a.port == NULL)
		start_thread(&a, eal_argc, eal);
	else
		start_process(&a, eal_argc, eal, device_argc, device_eal);
	printf("{\"load_version\": %d, \"ready\": true, \"slots\": %u, \"tsc_hz\": %lu, \"verified_packets\": %lu, "
	       "\"hugepages\": %s, \"invariant_tsc\": %s}\n",
	       LOAD_VERSION, a.slots, rte_get_tsc_hz(), device->verified, rte_eal_has_hugepages() ? "true" : "false",
	       invariant_tsc() ? "true" : "false");
	fflush(stdout);
	converse();
	_exit(0);
}

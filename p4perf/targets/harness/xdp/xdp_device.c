/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program as device under test of a load generator: native XDP at an end of a veth pair, in a network namespace of its
 * own. Its packets are processed by a thread of the kernel (threaded NAPI), which gets the CPU of this process, so that
 * the generator, whose system calls would process them otherwise, has its own CPU for itself.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>

#include <bpf/bpf.h>

#include "device.h"
#include "xdp.h"

#define INTERFACE "device"
#define OTHER_END "generator"
#define THREAD "napi/" INTERFACE "-"

/* Packets by what became of them, since the interface exists. */
struct interface_counters {
	uint64_t received, dropped, sent, not_sent;
};

static void
ethtool(void *command)
{
	struct ifreq request = {.ifr_name = INTERFACE, .ifr_data = command};
	const int handle = socket(AF_INET, SOCK_DGRAM, 0);

	if (handle < 0 || ioctl(handle, SIOCETHTOOL, &request) != 0)
		fail("device", "the counters of the interface cannot be read: %s", strerror(errno));
	close(handle);
}

static bool
ends_with(const char *name, const char *end)
{
	const size_t length = strnlen(name, ETH_GSTRING_LEN), wanted = strlen(end);

	return length >= wanted && memcmp(name + length - wanted, end, wanted) == 0;
}

/* The counters of all queues of the driver veth: rx_queue_0_xdp_packets and so on. */
static struct interface_counters
read_counters(void)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct interface_counters result = {0};
	struct ethtool_gstrings *names;
	struct ethtool_stats *values;
	uint32_t i;

	ethtool(&info);
	names = calloc(1, sizeof(*names) + (size_t)info.n_stats * ETH_GSTRING_LEN);
	values = calloc(1, sizeof(*values) + info.n_stats * sizeof(uint64_t));
	if (names == NULL || values == NULL)
		fail("memory", "no memory for the counters of the interface");
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_STATS;
	names->len = info.n_stats;
	values->cmd = ETHTOOL_GSTATS;
	values->n_stats = info.n_stats;
	ethtool(names);
	ethtool(values);
	for (i = 0; i < info.n_stats; i++) {
		const char *const name = (const char *)names->data + (size_t)i * ETH_GSTRING_LEN;
		const uint64_t value = values->data[i];

		if (ends_with(name, "_xdp_packets"))
			result.received += value;
		else if (ends_with(name, "_xdp_drops"))
			result.dropped += value;
		else if (ends_with(name, "_xdp_tx"))
			result.sent += value;
		else if (ends_with(name, "_xdp_tx_errors"))
			result.not_sent += value;
	}
	free(names);
	free(values);
	return result;
}

static void
write_file(const char *path, const char *text)
{
	FILE *const file = fopen(path, "w");

	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
		fail("device", "%s cannot be written: %s", path, strerror(errno));
}

/* The thread of the kernel that processes the packets of the interface; of several with that name the youngest. */
static int
napi_thread(void)
{
	DIR *const processes = opendir("/proc");
	const struct dirent *entry;
	char path[300], name[32];
	int found = 0;

	while (processes != NULL && (entry = readdir(processes)) != NULL) {
		FILE *file;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL && strncmp(name, THREAD, strlen(THREAD)) == 0 &&
		    atoi(entry->d_name) > found)
			found = atoi(entry->d_name);
		fclose(file);
	}
	if (processes != NULL)
		closedir(processes);
	if (found == 0)
		fail("device", "the kernel has no thread for the packets of the interface");
	return found;
}

/* Give the interface a thread of its own on the CPUs of this process. */
static int
start_thread(void)
{
	cpu_set_t cpus;
	int thread;

	/* What /sys shows are the interfaces of the namespace in which it was mounted. */
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL) != 0)
		fail("device", "no view of the interfaces of the namespace: %s", strerror(errno));
	write_file("/sys/class/net/" INTERFACE "/threaded", "1\n");
	thread = napi_thread();
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (sched_setaffinity(thread, sizeof(cpus), &cpus) != 0)
		fail("device", "the thread of the interface cannot be moved: %s", strerror(errno));
	return thread;
}

static uint64_t
switches_of(int thread)
{
	static const char key[] = "nonvoluntary_ctxt_switches:";
	char path[64], line[256];
	uint64_t value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", thread);
	file = fopen(path, "r");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			value = strtoull(line + sizeof(key) - 1, NULL, 10);
	if (file != NULL)
		fclose(file);
	return value;
}

/* The smallest program: every packet has the same verdict. */
static int
null_program(int verdict)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = verdict},
		{.code = BPF_JMP | BPF_EXIT},
	};
	const int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "null", "Dual BSD/GPL", instructions, 2, NULL);

	if (fd < 0)
		fail("load", "the kernel refuses the smallest program: %s", strerror(errno));
	return fd;
}

static void
attach(const char *interface, int program)
{
	if (bpf_xdp_attach((int)if_nametoindex(interface), program, XDP_FLAGS_DRV_MODE, NULL) != 0)
		fail("device", "the kernel does not attach a program to the interface %s: %s", interface, strerror(errno));
}

/* The driver veth gives what XDP sends to an interface that has a program as well: one that lets it pass. */
static void
open_other_end(void)
{
	char path[64];
	int own, other;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", getppid());
	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	other = open(path, O_RDONLY | O_CLOEXEC);
	if (own < 0 || other < 0 || setns(other, CLONE_NEWNET) != 0)
		fail("device", "the other end of the link cannot be reached: %s", strerror(errno));
	attach(OTHER_END, null_program(XDP_PASS));
	if (setns(own, CLONE_NEWNET) != 0)
		fail("device", "no way back to the namespace of the device: %s", strerror(errno));
	close(own);
	close(other);
}

/* One segment of traffic: it is counted until the generator says that no packet is under way any more. */
static void
serve_segment(struct device *device, int thread)
{
	struct sched_param priority = {.sched_priority = device->priority}, ordinary = {0};
	const struct timespec moment = {.tv_nsec = 200000};
	struct device_counters *const c = &device->counters;
	const struct interface_counters before = read_counters();
	const uint64_t switches = switches_of(thread);
	struct interface_counters after;

	memset(c, 0, sizeof(*c));
	device->realtime = device->priority > 0 && sched_setscheduler(thread, SCHED_FIFO, &priority) == 0;
	c->before = calibrate();
	device->running = true;
	while (!device->stop)
		nanosleep(&moment, NULL);
	c->after = calibrate();
	sched_setscheduler(thread, SCHED_OTHER, &ordinary);
	after = read_counters();
	c->received = after.received - before.received;
	c->dropped = after.dropped - before.dropped;
	c->tx_full = after.not_sent - before.not_sent;
	c->sent = after.sent - before.sent - c->tx_full;
	c->switches = switches_of(thread) - switches;
	__sync_synchronize();
	device->running = false;
}

void
serve_device(const struct options *options, const struct loaded *program, const struct loaded *baseline, uint64_t verified)
{
	struct device *const device = mmap(NULL, sizeof(*device), PROT_READ | PROT_WRITE, MAP_SHARED, options->device_fd, 0);
	const int programs[] = {program->fd, baseline->fd, null_program(XDP_TX)};
	enum device_mode attached = DEVICE_PROGRAM;
	cpu_set_t cpu;
	int thread;
	char order;

	if (device == MAP_FAILED)
		fail("usage", "--device: %s", strerror(errno));
	CPU_ZERO(&cpu);
	CPU_SET(options->device_cpu, &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu) != 0)
		fail("usage", "--cpu: %s", strerror(errno));
	open_other_end();
	attach(INTERFACE, programs[attached]); /* the interface has a NAPI from now on */
	thread = start_thread();
	device->verified = verified;
	__sync_synchronize();
	device->ready = true;
	while (read(device->wake[0], &order, 1) == 1) {
		if (device->mode == DEVICE_FAULTY)
			fail("usage", "a program of the kernel injects no faults");
		if (device->mode != attached)
			attach(INTERFACE, programs[device->mode]);
		attached = device->mode;
		serve_segment(device, thread);
	}
}

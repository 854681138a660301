/* SPDX-License-Identifier: Apache-2.0 */
/* The device under test behind a port: polls, runs its program, sends. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "load.h"
#include "options.h"

#define WAIT_MS 1000

bool
load_realtime(int priority)
{
	struct sched_param parameters = {.sched_priority = priority};

	return sched_setscheduler(0, priority > 0 ? SCHED_FIFO : SCHED_OTHER, &parameters) == 0 && priority > 0;
}

uint64_t
load_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nivcsw;
}

static void
transmit(struct device *device, struct rte_mbuf **packets, uint16_t n)
{
	const uint16_t sent = rte_eth_tx_burst(device->port, 0, packets, n);

	device->counters.sent += sent;
	if (unlikely(sent < n)) {
		device->counters.tx_full += n - sent;
		rte_pktmbuf_free_bulk(packets + sent, n - sent);
	}
}

/* One look at the port; returns how many packets there were. */
static inline uint16_t
forward_nothing(struct device *device)
{
	struct rte_mbuf *packets[BURST_PACKETS];
	const uint16_t n = rte_eth_rx_burst(device->port, 0, packets, BURST_PACKETS);

	if (n != 0)
		transmit(device, packets, n);
	device->counters.received += n;
	return n;
}

static inline uint16_t
forward_program(struct device *device, const struct program *program)
{
	struct rte_mbuf *packets[BURST_PACKETS], *dropped[BURST_PACKETS];
	const uint16_t n = rte_eth_rx_burst(device->port, 0, packets, BURST_PACKETS);
	uint16_t i, kept = 0, n_dropped = 0;

	if (n == 0)
		return 0;
	program->run(packets, n);
	for (i = 0; i < n; i++) {
		if (packets[i]->port != PORT_DROP)
			packets[kept++] = packets[i];
		else
			dropped[n_dropped++] = packets[i];
	}
	transmit(device, packets, kept);
	if (unlikely(copies.n != 0)) {
		device->counters.copies += copies.n;
		for (i = 0; i < copies.n; i += BURST_PACKETS)
			transmit(device, copies.packets + i, RTE_MIN(copies.n - i, (unsigned int)BURST_PACKETS));
		copies.n = 0;
	}
	if (unlikely(n_dropped != 0)) {
		device->counters.dropped += n_dropped;
		rte_pktmbuf_free_bulk(dropped, n_dropped);
	}
	device->counters.received += n;
	return n;
}

static uint16_t
forward_faulty(struct device *device)
{
	struct device_counters *const c = &device->counters;
	const struct faults *const f = &device->faults;
	struct rte_mbuf *packets[BURST_PACKETS], *out[2 * BURST_PACKETS];
	const uint16_t n = rte_eth_rx_burst(device->port, 0, packets, BURST_PACKETS);
	uint16_t i, n_out = 0;

	for (i = 0; i < n; i++) {
		const uint64_t number = c->received + i + 1;

		if (f->lose != 0 && number % f->lose == 0) {
			rte_pktmbuf_free(packets[i]);
			c->lost++;
			continue;
		}
		out[n_out++] = packets[i];
		if (f->duplicate != 0 && number % f->duplicate == 0) {
			struct rte_mbuf *const copy = rte_pktmbuf_copy(packets[i], packets[i]->pool, 0, UINT32_MAX);

			if (copy == NULL)
				fail("run", "there is no room for a copy of a packet");
			out[n_out++] = copy;
			c->duplicated++;
		}
		/* The packet before goes behind this one, if there is one in the burst that was not doubled. */
		if (f->swap != 0 && number % f->swap == 0 && n_out >= 2 && out[n_out - 2] == packets[i - 1] &&
		    out[n_out - 1] == packets[i]) {
			out[n_out - 1] = packets[i - 1];
			out[n_out - 2] = packets[i];
			packets[i] = NULL; /* so that it is not taken for the packet before the next one */
			c->swapped++;
		}
	}
	c->received += n;
	if (n_out != 0)
		transmit(device, out, n_out);
	return n;
}

static void
forward(struct device *device)
{
	struct device_counters *const c = &device->counters;
	uint64_t last = rte_rdtsc(), now;

	while (!device->stop) {
		switch (device->mode) {
		case DEVICE_PROGRAM:
			forward_program(device, &program_under_test);
			break;
		case DEVICE_BASELINE:
			forward_program(device, &program_baseline);
			break;
		case DEVICE_NULL:
			forward_nothing(device);
			break;
		case DEVICE_FAULTY:
			forward_faulty(device);
			break;
		}
		now = rte_rdtsc();
		if (unlikely(now - last > c->max_gap_tsc))
			c->max_gap_tsc = now - last;
		if (unlikely(now - last > device->gap_tsc))
			c->gaps++;
		last = now;
		device->rounds++;
	}
}

int
device_serve(struct device *device)
{
	uint64_t switches;
	char order;

	while (read(device->wake[0], &order, 1) == 1) {
		memset(&device->counters, 0, sizeof(device->counters));
		device->realtime = load_realtime(device->priority);
		device->counters.before = calibrate();
		switches = load_switches();
		device->running = true;
		forward(device);
		device->counters.switches = load_switches() - switches;
		device->counters.after = calibrate();
		load_realtime(0);
		rte_smp_wmb();
		device->running = false;
	}
	return 0;
}

/* Wait until the device is running, or is not. */
static void
await(const struct device *device, bool running, const char *problem)
{
	const struct timespec moment = {.tv_nsec = 20000};
	const uint64_t deadline = rte_rdtsc() + WAIT_MS * rte_get_tsc_hz() / 1000;
	int status;

	while (device->running != running) {
		if (device->pid != 0 && waitpid(device->pid, &status, WNOHANG) == device->pid)
			fail("device", "the device under test died (%s %d)", WIFSIGNALED(status) ? "signal" : "status",
			     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		if (rte_rdtsc() > deadline)
			fail("device", "the device under test %s", problem);
		nanosleep(&moment, NULL);
	}
	rte_smp_rmb();
}

void
device_start(struct device *device, enum device_mode mode, const struct faults *faults, uint64_t gap_tsc)
{
	device->mode = mode;
	device->faults = *faults;
	device->gap_tsc = gap_tsc;
	device->stop = false;
	rte_smp_wmb();
	if (write(device->wake[1], "", 1) != 1)
		fail("device", "the device under test has gone");
	await(device, true, "does not start");
}

void
device_stop(struct device *device)
{
	device->stop = true;
	await(device, false, "hangs: it does not come back from a packet");
}

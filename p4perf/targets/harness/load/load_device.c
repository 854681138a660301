/* SPDX-License-Identifier: Apache-2.0 */
/* The device under test behind a port: polls, runs its program, sends. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "load.h"
#include "options.h"
#include "thread.h"

#define WAIT_MS 1000

static uint64_t
clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
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

static inline void
forward_nothing(struct device *device)
{
	struct rte_mbuf *packets[BURST_PACKETS];
	const uint16_t n = device_receive(device, packets);

	device->batch = n;
	if (n != 0)
		transmit(device, packets, n);
}

void
device_send(struct device *device, struct rte_mbuf **packets, uint16_t n)
{
	struct rte_mbuf *dropped[BURST_PACKETS];
	uint16_t i, kept = 0, n_dropped = 0;

	for (i = 0; i < n; i++) {
		if (packets[i]->port != PORT_DROP)
			packets[kept++] = packets[i];
		else
			dropped[n_dropped++] = packets[i];
	}
	if (kept != 0)
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
}

uint16_t
device_receive(struct device *device, struct rte_mbuf **packets)
{
	const uint16_t n = rte_eth_rx_burst(device->port, 0, packets, BURST_PACKETS);

	device->counters.received += n;
	return n;
}

static inline void
forward_program(struct device *device, const struct program *program)
{
	struct rte_mbuf *packets[BURST_PACKETS];
	uint16_t n;

	if (program->forward != NULL) {
		program->forward(device);
		return;
	}
	n = device_receive(device, packets);
	device->batch = n;
	if (n == 0)
		return;
	program->run(packets, n);
	device_send(device, packets, n);
}

static void
forward_faulty(struct device *device)
{
	struct device_counters *const c = &device->counters;
	const struct faults *const f = &device->faults;
	struct rte_mbuf *packets[BURST_PACKETS], *out[2 * BURST_PACKETS];
	const uint16_t n = rte_eth_rx_burst(device->port, 0, packets, BURST_PACKETS);
	uint16_t i, n_out = 0;

	for (i = 0; i < n; i++) {
		const uint64_t number = ++device->faulty_packets;

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
}

static void
forward(struct device *device)
{
	struct device_counters *const c = &device->counters;
	uint64_t last = rte_rdtsc(), now;
	const uint64_t stall_tsc = rte_get_tsc_hz() / 1000000 * STALL_US;
	bool idle = true;

	while (!device->stop) {
		device->batch = -1;
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
		if (unlikely(now - last > stall_tsc) && device->batch == 0)
			stall_record(&c->stalls, now - last);
		if (unlikely(now - last > device->gap_tsc))
			c->gaps++;
		if (device->batch == 0 || (device->batch > 0 && likely(now - last <= device->gap_tsc))) {
			c->batches[idle][device->batch]++;
			c->batch_tsc[idle][device->batch] += now - last;
		}
		idle = device->batch == 0;
		last = now;
	}
}

void
device_serve(struct device *device)
{
	uint64_t switches;
	char order;

	while (read(device->wake[0], &order, 1) == 1) {
		memset(&device->counters, 0, sizeof(device->counters));
		device->realtime = realtime(device->priority);
		device->counters.before = calibrate();
		switches = preemptions();
		device->running = true;
		forward(device);
		device->counters.switches = preemptions() - switches;
		device->counters.after = calibrate();
		realtime(0);
		rte_smp_wmb();
		device->running = false;
	}
}

/* Wait until a flag of the device has a value. */
static void
await(const struct device *device, const volatile bool *flag, bool value, unsigned int ms, const char *problem)
{
	const struct timespec moment = {.tv_nsec = 20000};
	const uint64_t deadline = clock_ms() + ms;
	int status;

	while (*flag != value) {
		if (device->pid != 0 && waitpid(device->pid, &status, WNOHANG) == device->pid) {
			/* What it says of itself was printed by it. */
			if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
				_exit(1);
			fail("device", "the device under test died (%s %d)", WIFSIGNALED(status) ? "signal" : "status",
			     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		}
		if (clock_ms() > deadline)
			fail("device", "the device under test %s", problem);
		nanosleep(&moment, NULL);
	}
	rte_smp_rmb();
}

void
device_await_ready(const struct device *device, unsigned int ms)
{
	await(device, &device->ready, true, ms, "does not get ready");
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
	await(device, &device->running, true, WAIT_MS, "does not start");
}

void
device_stop(struct device *device)
{
	device->stop = true;
	await(device, &device->running, false, WAIT_MS, "hangs: it does not come back from a packet");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The switches as device under test of a load generator. Each segment of traffic is for one of them, or for a loop of this
 * process that sends every packet back as it came, which shows what generator and link can do.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_packet.h>

#include "bmv2.h"
#include "thread.h"

#define BURST 64
#define IDLE_NS 100000 /* of CPU time in a moment: a switch that does less has no packets */
#define AWAIT_IDLE_MS 400
#define AWAIT_END_MS 300

static const struct timespec moment = {.tv_nsec = 1000000};

/* The loop: a packet socket, and room for a burst. */
struct mirror {
	int socket;
	struct mmsghdr messages[BURST];
	struct iovec pieces[BURST];
	uint8_t packets[BURST][MAX_FRAME];
};

static void
open_mirror(struct mirror *mirror)
{
	const int on = 1;
	unsigned int i;

	mirror->socket = link_socket(INTERFACE, false);
	socket_listen(mirror->socket, false);
	if (setsockopt(mirror->socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) != 0 ||
	    setsockopt(mirror->socket, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) != 0)
		fail("device", "a packet socket cannot be set up: %s", strerror(errno));
	for (i = 0; i < BURST; i++) {
		mirror->pieces[i].iov_base = mirror->packets[i];
		mirror->messages[i].msg_hdr.msg_iov = &mirror->pieces[i];
		mirror->messages[i].msg_hdr.msg_iovlen = 1;
	}
}

static void
reflect(struct mirror *mirror)
{
	int i, n, sent, done;

	for (i = 0; i < BURST; i++)
		mirror->pieces[i].iov_len = MAX_FRAME;
	n = recvmmsg(mirror->socket, mirror->messages, BURST, MSG_DONTWAIT, NULL);
	for (i = 0; i < n; i++)
		mirror->pieces[i].iov_len = mirror->messages[i].msg_len;
	for (done = 0; done < n; done += sent > 0 ? sent : 1) /* what is not taken is lost */
		sent = sendmmsg(mirror->socket, mirror->messages + done, (unsigned int)(n - done), 0);
}

/* Wait until a switch has done all of its packets. */
static void
await_idle(const struct switch_process *process)
{
	uint64_t before, now = switch_busy_ns(process);
	unsigned int ms = 0;

	do {
		before = now;
		nanosleep(&moment, NULL);
		now = switch_busy_ns(process);
	} while (now - before > IDLE_NS && ++ms < AWAIT_IDLE_MS);
}

/* A switch that sent nothing may be one that was killed and is not gone yet, on a busy machine: say so if it is. */
static void
await_end(struct switch_process *process)
{
	unsigned int ms;

	for (ms = 0; ms < AWAIT_END_MS; ms++) {
		switch_check(process, "device");
		nanosleep(&moment, NULL);
	}
}

static void
serve_null(struct device *device, struct mirror *mirror)
{
	device->counters.before = calibrate();
	device->realtime = realtime(device->priority);
	device->running = true;
	while (!device->stop)
		reflect(mirror);
	realtime(0);
	device->counters.after = calibrate();
}

static void
serve_switch(struct device *device, struct switch_process *process, bool drops)
{
	struct device_counters *const c = &device->counters;
	uint64_t busy, switches;
	struct socket_counters arrived;

	socket_read(process->socket);
	c->before = calibrate();
	device->realtime = threads_order(process, device->priority);
	if (drops && !device->realtime)
		fail("device", "without real-time scheduling what bmv2 loses cannot be told from what its program drops");
	busy = switch_busy_ns(process);
	switches = threads_switches(process);
	device->running = true;
	while (!device->stop)
		nanosleep(&moment, NULL);
	await_idle(process);
	switch_check(process, "device");
	c->busy_ns = switch_busy_ns(process) - busy;
	c->switches = threads_switches(process) - switches;
	threads_order(process, 0);
	c->after = calibrate();
	arrived = socket_read(process->socket);
	c->received = arrived.arrived - arrived.refused;
}

/* One segment of traffic: it is counted until the generator says that no packet is under way any more. */
static void
serve_segment(struct device *device, struct switch_process *process, struct mirror *mirror, bool drops)
{
	struct device_counters *const c = &device->counters;
	const struct link_counters before = links_read();
	struct link_counters after;
	uint64_t sent;

	memset(c, 0, sizeof(*c));
	if (process == NULL)
		serve_null(device, mirror);
	else
		serve_switch(device, process, drops);
	after = links_read();
	sent = after.sent - before.sent;
	if (process != NULL && sent == 0 && !drops)
		await_end(process);
	c->copies = after.copies - before.copies;
	c->tx_full = after.not_sent - before.not_sent;
	c->sent = sent + c->copies;
	c->dropped = drops && c->received > sent ? c->received - sent : 0;
	__sync_synchronize();
	device->running = false;
}

void
serve_device(const struct options *options, struct switch_process *program, struct switch_process *baseline,
	     uint64_t verified)
{
	static struct mirror mirror;
	struct device *const device =
		mmap(NULL, sizeof(*device), PROT_READ | PROT_WRITE, MAP_SHARED, options->device_fd, 0);
	struct switch_process *const processes[] = {program, baseline, NULL};
	int listening = -1;
	char order;

	if (device == MAP_FAILED)
		fail("usage", "--device: %s", strerror(errno));
	open_mirror(&mirror);
	device->verified = verified;
	__sync_synchronize();
	device->ready = true;
	while (read(device->wake[0], &order, 1) == 1) {
		struct switch_process *process;
		int socket;

		if (device->mode == DEVICE_FAULTY)
			fail("usage", "simple_switch injects no faults");
		process = processes[device->mode];
		socket = process == NULL ? mirror.socket : process->socket;
		if (socket != listening) {
			if (listening >= 0)
				socket_listen(listening, false);
			socket_listen(socket, true);
			listening = socket;
		}
		if (process != NULL)
			switch_check(process, "device");
		serve_segment(device, process, &mirror, options->drops && device->mode == DEVICE_PROGRAM);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functional check of a program in simple_switch: packets with their expected outcomes, computed by the reference
 * interpreter, are sent one after the other, and what comes out of every port is compared. The layout of the file is told
 * in verify.c. Of what stands at its end, the states are compared that simple_switch_CLI is to show; the switch does not
 * count hits.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_packet.h>

#include "bmv2.h"

#define OUTPUT_MS 10000 /* a busy machine may not let the switch run for seconds */
#define MORE_MS 20
#define MAX_OUTPUTS 64
#define EXERCISES 512
#define SLEEPS_SHARE 4 /* A thread that packets pass sleeps at least after every so-many-th one. */

/* Packets at an interface: what leaves by a port. */
struct tap {
	unsigned int port;
	int socket;
	bool own; /* the switch sends at this interface, rather than at its other end */
};

struct taps {
	struct tap all[MAX_SINKS + 1];
	unsigned int n;
};

static struct taps *
open_taps(const struct options *options)
{
	static struct taps taps;
	char name[32];
	unsigned int i;

	taps.n = 0;
	taps.all[taps.n++] = (struct tap){options->port, link_socket(OTHER_END, true), false};
	for (i = 0; i < options->n_sinks; i++) {
		snprintf(name, sizeof(name), "copy%u", options->sinks[i]);
		taps.all[taps.n++] = (struct tap){options->sinks[i], link_socket(name, false), true};
	}
	return &taps;
}

static void
close_taps(struct taps *taps)
{
	while (taps->n > 0)
		close(taps->all[--taps->n].socket);
}

static void
send_packet(const struct taps *taps, const uint8_t *packet, unsigned int length)
{
	if (send(taps->all[0].socket, packet, length, 0) != (ssize_t)length)
		fail("link", "a packet of %u bytes cannot be sent: %s", length, strerror(errno));
}

/* The next packet that leaves there; -1: none does for so long. */
static int
receive_packet(const struct tap *tap, uint8_t *packet, int ms)
{
	for (;;) {
		struct pollfd wait = {.fd = tap->socket, .events = POLLIN};
		struct sockaddr_ll address;
		socklen_t size = sizeof(address);
		ssize_t length;

		if (poll(&wait, 1, ms) <= 0)
			return -1;
		length = recvfrom(tap->socket, packet, MAX_FRAME, MSG_DONTWAIT, (struct sockaddr *)&address, &size);
		if (length >= 0 && (address.sll_pkttype == PACKET_OUTGOING) == tap->own)
			return (int)length;
	}
}

static const struct tap *
tap_of(const struct taps *taps, unsigned int port)
{
	unsigned int i;

	for (i = 0; i < taps->n; i++)
		if (taps->all[i].port == port)
			return &taps->all[i];
	return NULL;
}

static bool
is_same(const struct expectation *expected, const uint8_t *packet, int length)
{
	unsigned int i;

	for (i = 0; length == expected->length && i < expected->length; i++)
		if (((packet[i] ^ expected->data[i]) & expected->mask[i]) != 0)
			return false;
	return length == expected->length;
}

static void
compare(const struct expectation *expected, const uint8_t *packet, int length, uint32_t n)
{
	unsigned int i;

	if (length != expected->length)
		fail("verify", "packet %u has %d bytes at port %u, expected %u", n, length, expected->port,
		     expected->length);
	for (i = 0; i < expected->length; i++)
		if (((packet[i] ^ expected->data[i]) & expected->mask[i]) != 0)
			fail("verify", "packet %u differs at byte %u at port %u: %02x, expected %02x", n, i, expected->port,
			     packet[i], expected->data[i]);
}

/* What leaves by the same port comes in any order. What is too short for a packet socket does not leave. */
static void
check_outputs(struct switch_process *process, const struct taps *taps, FILE *file, unsigned int outputs, bool masks,
	      bool sent, uint32_t n)
{
	static struct expectation expected[MAX_OUTPUTS], first;
	static uint8_t got[MAX_FRAME];
	unsigned int i, k;

	if (outputs > MAX_OUTPUTS)
		fail("verify", "packet %u leaves %u times", n, outputs);
	for (i = 0; i < outputs; i++)
		read_expectation(file, &expected[i], masks);
	for (i = 0; sent && i < outputs; i++) {
		const unsigned int port = expected[i].port;
		const struct tap *const tap = tap_of(taps, port);
		int length;

		if (expected[i].length < MIN_FRAME)
			continue;
		if (tap == NULL)
			fail("verify", "packet %u should leave by port %u, where there is no interface", n, port);
		length = receive_packet(tap, got, OUTPUT_MS);
		if (length < 0) {
			switch_check(process, "device");
			fail("verify", "packet %u does not leave by port %u", n, port);
		}
		for (k = i; k < outputs && !(expected[k].port == port && is_same(&expected[k], got, length)); k++)
			;
		if (k == outputs)
			compare(&expected[i], got, length, n);
		first = expected[i];
		expected[i] = expected[k];
		expected[k] = first;
	}
}

/* Counters and registers, if there are any to compare. */
static void
check_states(struct switch_process *process, const struct options *options, FILE *file, const uint32_t *counts)
{
	uint64_t sum, ignored;
	uint32_t i;

	for (i = 0; i < counts[1]; i++)
		read_all(file, &ignored, sizeof(ignored));
	for (i = 0; i < options->n_states && i < counts[2]; i++) {
		const struct state *const state = &options->states[i];

		read_all(file, &sum, sizeof(sum));
		if (state->cells != 0 && switch_state(process, options, state) != sum)
			fail("verify", "%s has other contents than expected after %u packets", state->name, counts[0]);
	}
}

/* Nothing more may come. */
static void
check_quiet(const struct taps *taps)
{
	static uint8_t got[MAX_FRAME];
	unsigned int i;

	for (i = 0; i < taps->n; i++)
		if (receive_packet(&taps->all[i], got, i == 0 ? MORE_MS : 0) >= 0)
			fail("verify", "more packets than expected leave by port %u", taps->all[i].port);
}

uint64_t
verify(struct switch_process *process, const struct options *options, uint64_t *too_short)
{
	static struct thread before[MAX_THREADS];
	static uint8_t packet[MAX_FRAME];
	struct taps *const taps = open_taps(options);
	FILE *file = fopen(options->verify_path, "rb");
	unsigned int n_before, n_sent = 0;
	uint32_t counts[4], n;
	uint16_t head[2];
	char magic[8];

	if (file == NULL)
		fail("verify", "cannot open %s: %s", options->verify_path, strerror(errno));
	read_all(file, magic, sizeof(magic));
	read_all(file, counts, sizeof(counts));
	if (memcmp(magic, "P4PVRFY2", 8) != 0)
		fail("verify", "%s is no verification file", options->verify_path);
	*too_short = 0;
	n_before = threads_read(process, before);
	for (n = 0; n < counts[0]; n++) {
		read_all(file, head, sizeof(head));
		if (head[0] > MAX_FRAME)
			fail("verify", "packet %u is too long", n);
		read_all(file, packet, head[0]);
		if (head[0] >= MIN_FRAME)
			send_packet(taps, packet, head[0]);
		else
			++*too_short;
		check_outputs(process, taps, file, head[1], counts[3] != 0, head[0] >= MIN_FRAME, n);
		n_sent += head[0] >= MIN_FRAME && head[1] != 0;
	}
	check_quiet(taps);
	check_states(process, options, file, counts);
	threads_find(process, before, n_before, n_sent / SLEEPS_SHARE + 1);
	close_taps(taps);
	fclose(file);
	return counts[0] - *too_short;
}

void
exercise(struct switch_process *process, const struct options *options)
{
	static struct thread before[MAX_THREADS];
	static uint8_t got[MAX_FRAME];
	struct taps *const taps = open_taps(options);
	const unsigned int n_before = threads_read(process, before);
	unsigned int n;

	for (n = 0; n < EXERCISES; n++) {
		send_packet(taps, options->frame, options->frame_length);
		if (receive_packet(&taps->all[0], got, OUTPUT_MS) < 0) {
			switch_check(process, "device");
			fail("device", "simple_switch with the %s does not forward packets", process->name);
		}
	}
	threads_find(process, before, n_before, EXERCISES / SLEEPS_SHARE);
	close_taps(taps);
}

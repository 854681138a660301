/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What t4p4s has here in the place of network interfaces: packets come from the harness and go back to it.
 *
 * t4p4s.sh compiles this file into a program where its own variants have dpdk_nicon.c (interfaces) or dpdk_nicoff.c
 * (packets of a test file). What becomes of it is a library: a burst goes through the body of t4p4s' main loop.
 */
#include "gen_include.h"
#include "main.h"

#include <string.h>

#include <rte_prefetch.h>

#include "library.h"

extern struct lcore_conf lcore_conf[RTE_MAX_LCORE];

/* Of main.c and of the generated code, whose headers do not have them. */
void main_loop_pre_do_post_rx(LCPARAMS);
void init_dataplane(SHORT_STDPARAMS);

static struct lcore_data lcore;
static packet_descriptor_t descriptor;

/* Receive: as from an interface, but that the burst is there already. */

void
main_loop_rx_group(unsigned queue, LCPARAMS)
{
}

unsigned
get_queue_count(LCPARAMS)
{
	return 1;
}

unsigned
get_pkt_count_in_group(LCPARAMS)
{
	return lcdata->nb_rx;
}

uint32_t
get_portid(unsigned queue, LCPARAMS)
{
	return 0;
}

bool
receive_packet(unsigned number, LCPARAMS)
{
	packet *received = lcdata->pkts_burst[number];

	rte_prefetch0(rte_pktmbuf_mtod(received, void *));
	pd->data = rte_pktmbuf_mtod(received, uint8_t *);
	pd->wrapper = received;
	return true;
}

bool
is_packet_handled(LCPARAMS)
{
	return true;
}

bool
check_packet_after_parse(LCPARAMS)
{
	return true;
}

int
get_packet_idx(LCPARAMS)
{
	return -1;
}

/* Send: the harness reads the port, and owns the packet. */

void
send_single_packet(packet *sent, int egress_port, int ingress_port, bool further, LCPARAMS)
{
	sent->port = (uint16_t)egress_port;
}

void
free_packet(LCPARAMS)
{
	pd->wrapper->port = P4PERF_LIBRARY_DROP;
}

uint32_t
get_port_mask(void)
{
	return 0x3;
}

uint8_t
get_port_count(void)
{
	return 2;
}

/* Nothing has to be done around a packet, ... */

void
main_loop_pre_rx(LCPARAMS)
{
}

void
main_loop_post_rx(bool got_packet, LCPARAMS)
{
}

void
main_loop_pre_single_rx(LCPARAMS)
{
}

void
main_loop_post_single_rx(bool got_packet, LCPARAMS)
{
}

void
main_loop_pre_single_tx(LCPARAMS)
{
}

void
main_loop_post_single_tx(LCPARAMS)
{
}

/* ... and main(), which wants these, is never called. */

bool
core_is_working(LCPARAMS)
{
	return false;
}

void
initialize_nic(void)
{
}

void
init_storage(void)
{
}

int
launch_count(void)
{
	return 0;
}

void
t4p4s_pre_launch(int number)
{
}

void
t4p4s_post_launch(int number)
{
}

void
t4p4s_abnormal_exit(int status, int number)
{
}

int
t4p4s_normal_exit(void)
{
	return 0;
}

struct lcore_data
init_lcore_data(void)
{
	return (struct lcore_data){.conf = &lcore_conf[rte_lcore_id()], .is_valid = true};
}

/* What main() and dpdk_main_loop() do before the first packet, without a control plane. */
static int
setup(void)
{
	lcore.conf = &lcore_conf[rte_lcore_id()];
	lcore.is_valid = true;
	init_tables();
	init_memories();
	init_table_default_actions();
	init_dataplane(&descriptor, lcore.conf->state.tables);
	return 0;
}

static void
run(struct rte_mbuf **packets, unsigned int n)
{
	memcpy(lcore.pkts_burst, packets, n * sizeof(*packets));
	lcore.nb_rx = n;
	main_loop_pre_do_post_rx(&lcore, &descriptor);
}

__attribute__((visibility("default"))) const struct p4perf_library p4perf_library = {
	.setup = setup,
	.run = run,
};

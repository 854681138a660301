/* The order in which t4p4s calls what is in the place of network interfaces, around a program that sends to port 1. */
#include "gen_include.h"
#include "main.h"
#include <stdlib.h>

struct lcore_conf lcore_conf[RTE_MAX_LCORE];
static int steps;

int init_tables() { return steps++; }
int init_memories() { return steps++; }
void init_table_default_actions() { steps++; }

void init_dataplane(SHORT_STDPARAMS)
{
	if (steps != 3 || tables != lcore_conf[rte_lcore_id()].state.tables)
		abort();
}

static void handle_packet(uint32_t port, packet_descriptor_t *pd)
{
	pd->egress_port = port == 0 && rte_pktmbuf_data_len(pd->wrapper) >= HEADERS_BYTES ? 1 : 200;
}

static void do_single_rx(unsigned queue, unsigned number, LCPARAMS)
{
	main_loop_pre_single_rx(lcdata, pd);
	bool got_packet = receive_packet(number, lcdata, pd);
	if (got_packet && is_packet_handled(lcdata, pd)) {
		if (pd->data != rte_pktmbuf_mtod(pd->wrapper, uint8_t *) || !check_packet_after_parse(lcdata, pd))
			abort();
		handle_packet(get_portid(queue, lcdata, pd), pd);
		main_loop_pre_single_tx(lcdata, pd);
		if (pd->egress_port == 200)
			free_packet(lcdata, pd);
		else
			send_single_packet(pd->wrapper, pd->egress_port, 0, false, lcdata, pd);
		main_loop_post_single_tx(lcdata, pd);
	}
	main_loop_post_single_rx(got_packet, lcdata, pd);
}

void main_loop_pre_do_post_rx(LCPARAMS)
{
	bool any = false;
	main_loop_pre_rx(lcdata, pd);
	for (unsigned queue = 0; queue < get_queue_count(lcdata); queue++) {
		main_loop_rx_group(queue, lcdata, pd);
		unsigned n = get_pkt_count_in_group(lcdata);
		any |= n > 0;
		for (unsigned number = 0; number < n; number++)
			do_single_rx(queue, number, lcdata, pd);
	}
	main_loop_post_rx(any, lcdata, pd);
}

int main()
{
	initialize_nic();
	for (int i = 0; i < launch_count(); i++) {
		init_storage();
		t4p4s_pre_launch(i);
		struct lcore_data lcdata = init_lcore_data();
		while (core_is_working(&lcdata, NULL))
			t4p4s_abnormal_exit(get_packet_idx(&lcdata, NULL), get_port_count() + get_port_mask());
		t4p4s_post_launch(i);
	}
	return t4p4s_normal_exit();
}

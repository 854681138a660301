/* The types and functions of t4p4s between its main loop and what is in the place of network interfaces. */
#pragma once
#include <rte_lcore.h>
typedef struct lookup_table_s lookup_table_t;
typedef struct {
	packet *wrapper;
	uint8_t *data;
	int egress_port;
} packet_descriptor_t;
struct lcore_conf {
	struct {
		lookup_table_t *tables[1];
	} state;
};
#define LCPARAMS struct lcore_data *lcdata, packet_descriptor_t *pd
#define SHORT_STDPARAMS packet_descriptor_t *pd, lookup_table_t **tables

void initialize_nic();
int init_tables();
int init_memories();
int launch_count();
void t4p4s_abnormal_exit(int retval, int idx);
void t4p4s_pre_launch(int idx);
void t4p4s_post_launch(int idx);
int t4p4s_normal_exit();
bool core_is_working(LCPARAMS);
bool receive_packet(unsigned pkt_idx, LCPARAMS);
void free_packet(LCPARAMS);
bool is_packet_handled(LCPARAMS);
void init_storage();
void main_loop_pre_rx(LCPARAMS);
void main_loop_post_rx(bool, LCPARAMS);
void main_loop_pre_single_rx(LCPARAMS);
void main_loop_post_single_rx(bool got_packet, LCPARAMS);
void main_loop_pre_single_tx(LCPARAMS);
void main_loop_post_single_tx(LCPARAMS);
uint32_t get_portid(unsigned queue_idx, LCPARAMS);
void main_loop_rx_group(unsigned queue_idx, LCPARAMS);
unsigned get_pkt_count_in_group();
unsigned get_queue_count();
void send_single_packet(packet *pkt, int egress_port, int ingress_port, bool is_broadcast_nonfirst, LCPARAMS);
struct lcore_data init_lcore_data();
void init_table_default_actions();
int get_packet_idx(LCPARAMS);
bool check_packet_after_parse(LCPARAMS);
uint32_t get_port_mask();
uint8_t get_port_count();

/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator of the user defines, for p4perf measure FILE.c. */
#ifndef P4PERF_OWN_OPERATOR_H
#define P4PERF_OWN_OPERATOR_H

#include <stdint.h>

/*
 * Called once for each packet: its first byte and its length in bytes, FCS included. What it returns goes into the
 * destination address of the packet. It may write to the packet, and has up to 512 bytes before it.
 */
uint64_t operate(uint8_t *packet, uint32_t length);

/* Need not be there. Called once at the start, after that of DPDK; 0, or anything else if the start failed. */
int operate_setup(void);

#endif

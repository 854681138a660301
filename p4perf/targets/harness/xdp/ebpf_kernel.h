/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What programs of p4c-ebpf are written with (--target kernel), in the place of the header of this name that comes with
 * p4c: maps are those of libbpf, and the packet is one of XDP. The harness has the types of keys and values only.
 */
#ifndef P4PERF_EBPF_KERNEL_H
#define P4PERF_EBPF_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 i8;
typedef __s16 i16;
typedef __s32 i32;
typedef __s64 i64;

#ifdef __bpf__
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define TC_ACT_OK 0
#define TC_ACT_SHOT 2

/* The fields of struct __sk_buff that a filter reads. */
struct filtered_packet {
	long data, data_end;
	__u32 len;
};

#define SK_BUFF struct filtered_packet

#define load_byte(data, at) (*((const u8 *)(data) + (at)))
#define load_half(data, at) bpf_ntohs(*(const u16 *)((const u8 *)(data) + (at)))
#define load_word(data, at) bpf_ntohl(*(const u32 *)((const u8 *)(data) + (at)))
#define load_dword(data, at) bpf_be64_to_cpu(*(const u64 *)((const u8 *)(data) + (at)))

#define REGISTER_START()
#define REGISTER_END()
#define BPF_ANNOTATE_KV_PAIR(name, key, value)
#define REGISTER_TABLE(name, type, key, value, size) REGISTER_TABLE_FLAGS(name, type, key, value, size, 0)
#define REGISTER_TABLE_FLAGS(name, kind, key_type, value_type, size, flags) \
	struct {                                                            \
		__uint(type, kind);                                         \
		__type(key, key_type);                                      \
		__type(value, value_type);                                  \
		__uint(max_entries, size);                                  \
		__uint(map_flags, flags);                                   \
	} name SEC(".maps");
#define BPF_MAP_LOOKUP_ELEM(table, key) bpf_map_lookup_elem(&(table), key)
#define BPF_MAP_UPDATE_ELEM(table, key, value, flags) bpf_map_update_elem(&(table), key, value, flags)
#endif

#endif

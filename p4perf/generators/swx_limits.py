"""What the SWX pipeline of DPDK 22.11 can do, and where it ends: read from its source, tried with the library."""

from __future__ import annotations

from p4perf.generators.capabilities import Capabilities, Limit

MAX_HEADERS = 64
MAX_STRUCT_BYTES = 255
MAX_METADATA_BYTES = 236
"""What is left of the structure for the fields of a program, beside ports, drop flag and temporaries."""
MAX_NAME = 63
MAX_TABLES = 256
MAX_COPIES = 64

CAPABILITIES = Capabilities(
    "dpdk-swx",
    missing={
        "offered load": "it reads packets from memory as fast as the program takes them",
        "hash crc16": "its hash functions are crc32 (CRC-32C) and jhash (DPDK 22.11, hash_funcs_register)",
        "random": "it has no instruction that draws numbers (DPDK 22.11, enum instruction_type)",
        "resubmit": "a packet that comes back is the one that was deparsed (DPDK 22.11, instruction recirculate)",
    },
    limits={
        "headers": Limit(
            MAX_HEADERS, "one bit of a 64-bit mask each, DPDK 22.11, rte_swx_pipeline_packet_header_register"
        ),
        "header bytes": Limit(
            MAX_STRUCT_BYTES, "instructions hold sizes and offsets in one byte, DPDK 22.11, struct instr_io"
        ),
        "metadata bytes": Limit(
            MAX_METADATA_BYTES,
            "instructions hold offsets in one byte, DPDK 22.11, struct instr_operand; ports and more",
        ),
        "action data bytes": Limit(
            MAX_STRUCT_BYTES, "instructions hold offsets in one byte, DPDK 22.11, struct instr_operand"
        ),
        "computed field bits": Limit(64, "operands of arithmetic, DPDK 22.11, instr_alu_add_translate"),
        "tables": Limit(MAX_TABLES, "instructions hold the table in one byte, DPDK 22.11, struct instr_table"),
        "exact entries": Limit(1 << 30, "sizes of 32 bit, DPDK 22.11, rte_swx_table_em.c"),
        "lpm key bits": Limit(8 * 253, "64 fields of rte_acl, DPDK 22.11, rte_swx_table_wm.c"),
        "ternary key bits": Limit(8 * 253, "64 fields of rte_acl, DPDK 22.11, rte_swx_table_wm.c"),
        "register bits": Limit(64, "cells of 64 bit, DPDK 22.11, rte_swx_pipeline_regarray_config"),
        "copies": Limit(MAX_COPIES, "mirroring slots are bits of a 64-bit mask, DPDK 22.11, struct thread"),
    },
    remarks={
        "hash crc32": "it is CRC-32C that starts with zero (rte_hash_crc), not that of Ethernet; the oracle knows",
        "hash checksum16": "it says 0xFFFF where RFC 1071 says 0 (ckadd); the oracle knows",
        "checksum verify": "a checksum that should be 0 is taken for wrong: ckadd makes it 0xFFFF",
        "checksum update": "a checksum that should be 0 becomes 0xFFFF (ckadd)",
        "clone": "a clone is made when the packet is sent, so only programs that change no header have clones",
        "lpm": "SWX matches prefixes by rte_acl, as it does ternary keys",
    },
)
"""Constructs that are missing and limits. Offsets in metadata and action data are checked when they are known."""

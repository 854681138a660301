// SPDX-License-Identifier: Apache-2.0
// A label switching router that is an edge as well: labels are swapped or popped, IPv4 prefixes get a label.
// Main path: a packet with one label that is swapped.
// A label stack entry is one word of 32 bit, as p4c-dpdk takes fields of 20, 3 and 1 bit from the wrong bits. Packets
// with more than one label can be swapped and popped as well: what follows the first label is not looked at, but a
// packet whose last label is popped is taken for IPv4.
#include "../include/architecture.p4"
#include "../include/headers.p4"

header mpls_t {
    bit<32> entry;
}

struct headers_t {
    ethernet_t ethernet;
    mpls_t mpls;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<32> label;
    bit<32> rest;
    bit<32> next_hop;
    bit<8> switched;
}

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_MPLS: mpls;
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state mpls {
        packet.extract(hdr.mpls);
        transition accept;
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

CONTROL {
    action swap(bit<32> label, bit<32> next_hop) {
        hdr.mpls.entry = (label << 12) | meta.rest;
        meta.next_hop = next_hop;
        meta.switched = 1;
    }

    action pop(bit<32> next_hop) {
        hdr.mpls.setInvalid();
        hdr.ethernet.type = ETHERTYPE_IPV4;
        meta.next_hop = next_hop;
        meta.switched = 1;
    }

    action unknown_label() {
        DROP;
    }

    action push(bit<32> label, bit<32> next_hop) {
        hdr.mpls.setValid();
        hdr.mpls.entry = (label << 12) | 0x13f;
        hdr.ethernet.type = ETHERTYPE_MPLS;
        meta.next_hop = next_hop;
        meta.switched = 1;
    }

    action unknown_prefix() {
        DROP;
    }

    action rewrite(bit<48> src, bit<48> dst, PORT port) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        SEND(port);
    }

    action no_neighbour() {
        DROP;
    }

    table labels {
        key = {
            meta.label: exact;
        }
        actions = {
            swap;
            pop;
            unknown_label;
        }
        default_action = unknown_label();
        size = 16384;
    }

    table prefixes {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            push;
            unknown_prefix;
        }
        default_action = unknown_prefix();
        size = 16384;
    }

    table next_hops {
        key = {
            meta.next_hop: exact;
        }
        actions = {
            rewrite;
            no_neighbour;
        }
        default_action = no_neighbour();
        size = 1024;
    }

    apply {
        meta.label = 0;
        meta.rest = 0;
        meta.next_hop = 0;
        meta.switched = 0;
        if (hdr.mpls.isValid()) {
            meta.label = hdr.mpls.entry >> 12;
            meta.rest = hdr.mpls.entry & 0xfff;
            if ((meta.rest & 0xff) > 1) {
                meta.rest = meta.rest - 1;
                labels.apply();
            } else {
                DROP;
            }
        } else if (hdr.ipv4.isValid()) {
            prefixes.apply();
        } else {
            DROP;
        }
        if (meta.switched == 1) {
            next_hops.apply();
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.mpls);
        packet.emit(hdr.ipv4);
    }
}

#include "../include/package.p4"

// SPDX-License-Identifier: Apache-2.0
// A firewall that remembers: what goes out sets two bits of a Bloom filter, what comes in passes if both are set.
// Main path: a packet from inside, which sets the bits and is forwarded.
// The two hashes are one function with two salts: p4c-dpdk silently makes crc32 of crc16. Cells have 32 bit, of which one
// is used: a register of single bits is no register of DPDK.
#include "../include/architecture.p4"
#include "../include/headers.p4"

const bit<32> CELLS_MASK = 0xffff;

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ports_t ports;
}

struct metadata_t {
    bit<32> inside;
    bit<32> outside;
    bit<32> input_port;
    bit<16> inside_port;
    bit<16> outside_port;
    bit<32> protocol;
    bit<32> salt;
    bit<32> first;
    bit<32> second;
    bit<32> first_bit;
    bit<32> second_bit;
    bit<8> from_inside;
    bit<8> passed;
}

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_TCP: ports;
            PROTOCOL_UDP: ports;
            default: accept;
        }
    }
    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

CONTROL {
    REGISTER(first_filter, 65536)
    REGISTER(second_filter, 65536)
    HASH(first_hash)
    HASH(second_hash)

    action is_inside() {
        meta.from_inside = 1;
    }

    action is_outside() {
        meta.from_inside = 0;
    }

    action forward(PORT port) {
        SEND(port);
    }

    action unknown_destination() {
        DROP;
    }

    table directions {
        key = {
            meta.input_port: exact;
        }
        actions = {
            is_inside;
            is_outside;
        }
        default_action = is_outside();
        size = 256;
    }

    table destinations {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            forward;
            unknown_destination;
        }
        default_action = unknown_destination();
        size = 4096;
    }

    apply {
        meta.input_port = INPUT_PORT;
        meta.passed = 0;
        meta.salt = 0x9e3779b9;
        meta.first_bit = 1;
        meta.second_bit = 1;
        if (hdr.ports.isValid()) {
            directions.apply();
            meta.protocol = (bit<32>)hdr.ipv4.protocol;
            if (meta.from_inside == 1) {
                meta.inside = hdr.ipv4.src;
                meta.outside = hdr.ipv4.dst;
                meta.inside_port = hdr.ports.src;
                meta.outside_port = hdr.ports.dst;
            } else {
                meta.inside = hdr.ipv4.dst;
                meta.outside = hdr.ipv4.src;
                meta.inside_port = hdr.ports.dst;
                meta.outside_port = hdr.ports.src;
            }
            CALCULATE(meta.first, first_hash, meta.inside, meta.outside, meta.inside_port, meta.outside_port,
                      meta.protocol);
            CALCULATE(meta.second, second_hash, meta.salt, meta.inside, meta.outside, meta.inside_port,
                      meta.outside_port, meta.protocol);
            meta.first = meta.first & CELLS_MASK;
            meta.second = meta.second & CELLS_MASK;
            if (meta.from_inside == 1) {
                WRITE(first_filter, meta.first, 1);
                WRITE(second_filter, meta.second, 1);
                meta.passed = 1;
            } else {
                READ(meta.first_bit, first_filter, meta.first);
                READ(meta.second_bit, second_filter, meta.second);
                if (meta.first_bit == 1 && meta.second_bit == 1) {
                    meta.passed = 1;
                }
            }
        }
        if (meta.passed == 1) {
            destinations.apply();
        } else {
            DROP;
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

#include "../include/package.p4"

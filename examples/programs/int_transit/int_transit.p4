// SPDX-License-Identifier: Apache-2.0
// A transit hop of in-band telemetry: packets with a telemetry header get the record of this switch (its number, the
// input port, a count of packets) in front of earlier records, and lengths and checksum are brought up to date. The
// format is like that of INT over UDP, but not it: one shim of 8 bytes, records of 12 bytes.
// Main path: UDP with telemetry that may take another record.
// There are no times and no depths of queues: DPDK's pipeline has no queue, and times of different clocks would make
// every outcome another one.
#include "../include/architecture.p4"
#include "../include/headers.p4"

const bit<16> TELEMETRY_PORT = 5000;

header telemetry_t {
    bit<8> version;
    bit<8> hops;
    bit<8> most_hops;
    bit<8> words;
    bit<16> instructions;
    bit<16> next_port;
}

header record_t {
    bit<32> switch_id;
    bit<32> input_port;
    bit<32> packets;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    telemetry_t telemetry;
    record_t record;
}

struct metadata_t {
    bit<32> input_port;
    bit<32> switch_id;
    bit<32> packets;
    bit<8> watched;
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
            PROTOCOL_UDP: udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            TELEMETRY_PORT: telemetry;
            default: accept;
        }
    }
    state telemetry {
        packet.extract(hdr.telemetry);
        transition accept;
    }
}

CONTROL {
    IPV4_CHECKSUM_UNIT
    REGISTER(seen, 256)
    COUNTER(records, 256)

    action forward(PORT port) {
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        SEND(port);
    }

    action no_route() {
        DROP;
    }

    action watch(bit<32> switch_id) {
        meta.switch_id = switch_id;
        meta.watched = 1;
    }

    action ignore() {
        meta.watched = 0;
    }

    table routes {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            forward;
            no_route;
        }
        default_action = no_route();
        size = 16384;
    }

    table instructions {
        key = {
            hdr.telemetry.instructions: exact;
        }
        actions = {
            watch;
            ignore;
        }
        default_action = ignore();
        size = 16;
    }

    apply {
        meta.input_port = INPUT_PORT & 0xff;
        meta.packets = 0;
        meta.switch_id = 0;
        meta.watched = 0;
        if (hdr.ipv4.isValid()) {
            routes.apply();
            if (hdr.telemetry.isValid() && hdr.telemetry.hops < hdr.telemetry.most_hops) {
                instructions.apply();
                if (meta.watched == 1) {
                    READ(meta.packets, seen, meta.input_port);
                    meta.packets = meta.packets + 1;
                    WRITE(seen, meta.input_port, meta.packets);
                    COUNT(records, meta.input_port);
                    hdr.record.setValid();
                    hdr.record.switch_id = meta.switch_id;
                    hdr.record.input_port = meta.input_port;
                    hdr.record.packets = meta.packets;
                    hdr.telemetry.hops = hdr.telemetry.hops + 1;
                    hdr.telemetry.words = hdr.telemetry.words + 3;
                    hdr.ipv4.length = hdr.ipv4.length + 12;
                    hdr.udp.length = hdr.udp.length + 12;
                    hdr.udp.checksum = 0;
                }
            }
            UPDATE_IPV4_CHECKSUM(hdr.ipv4)
        } else {
            DROP;
        }
    }
}

DEPARSER {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.telemetry);
        packet.emit(hdr.record);
    }
}

#define IPV4_CHECKSUM hdr.ipv4
#include "../include/package.p4"

// SPDX-License-Identifier: Apache-2.0
// A load balancer for TCP and UDP with direct return: a virtual address and port have a group of servers, a hash of the
// flow chooses a bucket of the group, the bucket has the Ethernet address of a server. The server answers by itself, so
// that addresses, ports and checksums stay.
// Main path: a packet to a known virtual service.
// The hash is another number for p4c-dpdk than for v1model (see architecture.p4): the same flow may get another server.
#include "../include/architecture.p4"
#include "../include/headers.p4"

const bit<32> BUCKETS_MASK = 0xf;

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ports_t ports;
}

struct metadata_t {
    bit<32> src;
    bit<32> dst;
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> protocol;
    bit<32> group;
    bit<32> bucket;
    bit<8> balanced;
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
    HASH(flow_hash)
    COUNTER(servers, 65536)

    action balance(bit<32> group) {
        meta.group = group;
        meta.balanced = 1;
    }

    action no_service() {
        DROP;
    }

    action to_server(bit<48> dst, bit<32> server, PORT port) {
        hdr.ethernet.dst = dst;
        COUNT(servers, server);
        SEND(port);
    }

    action no_server() {
        DROP;
    }

    table services {
        key = {
            meta.dst: exact;
            meta.dst_port: exact;
            meta.protocol: exact;
        }
        actions = {
            balance;
            no_service;
        }
        default_action = no_service();
        size = 1024;
    }

    table buckets {
        key = {
            meta.group: exact;
            meta.bucket: exact;
        }
        actions = {
            to_server;
            no_server;
        }
        default_action = no_server();
        size = 16384;
    }

    apply {
        meta.group = 0;
        meta.bucket = 0;
        meta.balanced = 0;
        if (hdr.ports.isValid()) {
            meta.src = hdr.ipv4.src;
            meta.dst = hdr.ipv4.dst;
            meta.src_port = hdr.ports.src;
            meta.dst_port = hdr.ports.dst;
            meta.protocol = (bit<32>)hdr.ipv4.protocol;
            services.apply();
            if (meta.balanced == 1) {
                CALCULATE(meta.bucket, flow_hash, meta.src, meta.dst, meta.src_port, meta.dst_port, meta.protocol);
                meta.bucket = meta.bucket & BUCKETS_MASK;
                buckets.apply();
            }
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

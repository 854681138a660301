// SPDX-License-Identifier: Apache-2.0
// A stateless firewall: an access list over addresses, ports and protocol, counters of its rules, then forwarding by the
// Ethernet destination. Nothing passes that no rule permits.
// Main path: TCP or UDP over IPv4, permitted, to a known destination.
#include "../include/architecture.p4"
#include "../include/headers.p4"

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
    bit<8> protocol;
    bit<8> permitted;
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
    COUNTER(rules, 1024)

    action permit(bit<32> rule) {
        COUNT(rules, rule);
        meta.permitted = 1;
    }

    action deny(bit<32> rule) {
        COUNT(rules, rule);
        DROP;
    }

    action deny_unmatched() {
        DROP;
    }

    action forward(PORT port) {
        SEND(port);
    }

    action unknown_destination() {
        DROP;
    }

    table access_list {
        key = {
            meta.src: ternary;
            meta.dst: ternary;
            meta.src_port: ternary;
            meta.dst_port: ternary;
            meta.protocol: ternary;
        }
        actions = {
            permit;
            deny;
            deny_unmatched;
        }
        default_action = deny_unmatched();
        size = 1024;
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
        size = 16384;
    }

    apply {
        meta.src = 0;
        meta.dst = 0;
        meta.src_port = 0;
        meta.dst_port = 0;
        meta.protocol = 0;
        meta.permitted = 0;
        if (hdr.ipv4.isValid()) {
            meta.src = hdr.ipv4.src;
            meta.dst = hdr.ipv4.dst;
            meta.protocol = hdr.ipv4.protocol;
            if (hdr.ports.isValid()) {
                meta.src_port = hdr.ports.src;
                meta.dst_port = hdr.ports.dst;
            }
            access_list.apply();
        } else {
            DROP;
        }
        if (meta.permitted == 1) {
            destinations.apply();
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

// SPDX-License-Identifier: Apache-2.0
// A rate limiter that marks: the subscriber of an address has a meter; yellow packets are marked for lower precedence
// (DSCP AF13), red ones are dropped.
// Main path: a known subscriber within the rate.
// Meters have no rates until a control plane sets them: all packets are green then.
// p4c-dpdk has no length of the packet in PNA: the meter gets the length that IPv4 says.
#include "../include/architecture.p4"
#include "../include/headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<32> subscriber;
    bit<32> length;
    bit<8> metered;
    bit<8> red;
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
        transition accept;
    }
}

CONTROL {
    IPV4_CHECKSUM_UNIT
    METER(subscriber_meters, 65536)
    COUNTER(marked, 65536)

    action set_subscriber(bit<32> subscriber) {
        meta.subscriber = subscriber;
        meta.metered = 1;
    }

    action unlimited() {
        meta.metered = 0;
    }

    action forward(PORT port) {
        SEND(port);
    }

    action unknown_destination() {
        DROP;
    }

    table subscribers {
        key = {
            hdr.ipv4.src: exact;
        }
        actions = {
            set_subscriber;
            unlimited;
        }
        default_action = unlimited();
        size = 65536;
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
        COLOUR colour;
        meta.subscriber = 0;
        meta.metered = 0;
        meta.red = 0;
        meta.length = 0;
        if (hdr.ipv4.isValid()) {
            meta.length = (bit<32>)hdr.ipv4.length;
            subscribers.apply();
            if (meta.metered == 1) {
                MEASURE(colour, subscriber_meters, meta.subscriber, meta.length);
                if (IS_YELLOW(colour)) {
                    COUNT(marked, meta.subscriber);
                    hdr.ipv4.tos = (hdr.ipv4.tos & 3) | 0x38;
                    UPDATE_IPV4_CHECKSUM(hdr.ipv4)
                } else if (IS_RED(colour)) {
                    meta.red = 1;
                }
            }
            if (meta.red == 1) {
                DROP;
            } else {
                destinations.apply();
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
    }
}

#define IPV4_CHECKSUM hdr.ipv4
#include "../include/package.p4"

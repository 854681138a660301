// A small router with a list of denied flows: what the reader of programs for bmv2 is tested with.
// router.json is what p4c-bm2-ss 1.2.3.7 makes of it: p4c-bm2-ss router.p4 -o router.json
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header vlan_t { bit<3> pcp; bit<1> dei; bit<12> vid; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length; bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
header udp_t { bit<16> sport; bit<16> dport; bit<16> length; bit<16> checksum; }

struct headers_t { ethernet_t ethernet; vlan_t[2] vlan; ipv4_t ipv4; udp_t udp; }
struct metadata_t { bit<32> flow; bit<32> seen; bit<1> denied; }

parser Reader(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x8100: vlan; 0x0800: ipv4; default: accept; }
    }
    state vlan {
        packet.extract(hdr.vlan.next);
        transition select(hdr.vlan.last.type) { 0x8100: vlan; 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.offset, hdr.ipv4.protocol) { (0, 17): udp; default: accept; }
    }
    state udp { packet.extract(hdr.udp); transition accept; }
}

control Check(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length,
            hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
            hdr.ipv4.dst }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Route(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(1024, CounterType.packets_and_bytes) routed;
    register<bit<32>>(4096) flows;
    action drop() { mark_to_drop(standard); }
    action deny() { meta.denied = 1; drop(); }
    action next_hop(bit<48> mac, bit<9> port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard.egress_spec = port;
        routed.count((bit<32>) port);
    }
    action note() {
        hash(meta.flow, HashAlgorithm.crc32, 32w0, { hdr.ipv4.src, hdr.ipv4.dst, hdr.udp.sport, hdr.udp.dport },
            32w4096);
        flows.read(meta.seen, meta.flow);
        flows.write(meta.flow, meta.seen + 1);
    }
    table denied {
        key = { hdr.ipv4.src: ternary; hdr.udp.dport: ternary; }
        actions = { deny; NoAction; }
        const default_action = NoAction();
        const entries = { (0x0a000000 &&& 0xff000000, 53): deny(); (_, 7): deny(); }
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { next_hop; drop; }
        default_action = drop();
        size = 2048;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            if (hdr.udp.isValid()) { denied.apply(); }
            if (meta.denied == 0) {
                if (routes.apply().hit) { note(); }
            }
        } else {
            drop();
        }
    }
}

control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action untag() { hdr.vlan[0].setInvalid(); }
    table ports {
        key = { standard.egress_port: exact; }
        actions = { untag; NoAction; }
        size = 16;
    }
    apply { if (hdr.vlan[0].isValid()) { ports.apply(); } }
}

control Sum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length,
            hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
            hdr.ipv4.dst }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Write(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.vlan); packet.emit(hdr.ipv4); packet.emit(hdr.udp); }
}

V1Switch(Reader(), Check(), Route(), Leave(), Sum(), Write()) main;

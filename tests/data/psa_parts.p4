#include <core.p4>
#include <bmv2/psa.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header note_t { bit<32> port; bit<16> path; bit<16> seen; }
struct headers { ethernet_t ethernet; note_t note; }
struct nothing { }

parser ParserOfIngress(packet_in packet, out headers hdr, inout nothing meta,
                     in psa_ingress_parser_input_metadata_t istd, in nothing resubmitted, in nothing recirculated) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.note);
        transition accept;
    }
}

control ControlOfIngress(inout headers hdr, inout nothing meta,
                in psa_ingress_input_metadata_t istd, inout psa_ingress_output_metadata_t ostd) {
    Counter<bit<32>, bit<8>>(4, PSA_CounterType_t.PACKETS) seen;
    Register<bit<16>, bit<8>>(4) last;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) hashed;
    action forward(PortId_t port) {
        send_to_port(ostd, port);
        seen.count(1);
    }
    action flood() { multicast(ostd, (MulticastGroup_t) 3); }
    action again() { ostd.drop = false; ostd.resubmit = true; }
    action copy(PortId_t port) {
        send_to_port(ostd, port);
        ostd.clone = true;
        ostd.clone_session_id = (CloneSessionId_t) 8;
    }
    action round() { send_to_port(ostd, PSA_PORT_RECIRCULATE); }
    action sum(PortId_t port) {
        send_to_port(ostd, port);
        hdr.note.seen = hashed.get_hash({ hdr.ethernet.dst, hdr.ethernet.src });
    }
    action none() { }
    table hosts {
        key = { hdr.ethernet.dst : exact; }
        actions = { forward; flood; again; copy; round; sum; none; }
        default_action = none;
    }
    apply {
        if (istd.packet_path == PSA_PacketPath_t.RESUBMIT) {
            send_to_port(ostd, (PortId_t) 5);
            hdr.note.path = 5;
        } else if (istd.packet_path == PSA_PacketPath_t.RECIRCULATE) {
            send_to_port(ostd, (PortId_t) 6);
            hdr.note.port = (bit<32>) (PortIdUint_t) istd.ingress_port;
        } else {
            hdr.note.seen = last.read(0);
            last.write(0, hdr.ethernet.type);
            hosts.apply();
        }
    }
}

parser ParserOfEgress(packet_in packet, out headers hdr, inout nothing meta,
                    in psa_egress_parser_input_metadata_t istd, in nothing normal, in nothing i2e, in nothing e2e) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.note);
        transition accept;
    }
}

control ControlOfEgress(inout headers hdr, inout nothing meta,
               in psa_egress_input_metadata_t istd, inout psa_egress_output_metadata_t ostd) {
    apply {
        if (istd.packet_path == PSA_PacketPath_t.CLONE_I2E) {
            hdr.note.path = 3;
        }
        if (istd.packet_path == PSA_PacketPath_t.NORMAL_MULTICAST) {
            hdr.note.path = (bit<16>) (EgressInstanceUint_t) istd.instance;
        }
    }
}

control DeparserOfIngress(packet_out packet, out nothing i2e, out nothing resubmitted, out nothing normal,
                        inout headers hdr, in nothing meta, in psa_ingress_output_metadata_t istd) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.note);
    }
}

control DeparserOfEgress(packet_out packet, out nothing e2e, out nothing recirculated, inout headers hdr,
                       in nothing meta, in psa_egress_output_metadata_t istd,
                       in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.note);
    }
}

IngressPipeline(ParserOfIngress(), ControlOfIngress(), DeparserOfIngress()) ip;
EgressPipeline(ParserOfEgress(), ControlOfEgress(), DeparserOfEgress()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;

// SPDX-License-Identifier: Apache-2.0
// One source for two architectures: v1model (p4c-bm2-ss), and with -DPNA that of p4c-dpdk. What differs has a name here.
//
// What both take is less than what each takes:
// * fields that are used have whole bytes: p4c-dpdk takes others from the wrong bits;
// * metadata is set before it is read: DPDK does not zero it;
// * a port is a parameter of an action; no action is shared by tables, none is called as a field or ends with a number:
//   p4c-dpdk would give them other names;
// * no ~, no * and / but by powers of two, constants on the right of comparisons.
#include <core.p4>

#ifdef PNA
#include <dpdk/pna.p4>

#define PARSER parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, \
                                  in pna_main_parser_input_metadata_t istd)
#define CONTROL control MainControl(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd, \
                                    inout pna_main_output_metadata_t ostd)
#define DEPARSER control FrameDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, \
                                       in pna_main_output_metadata_t ostd)

#define PORT PortId_t
#define SEND(port) send_to_port(port)
// Ends the packet at once: tables after it are not looked up, as they are in v1model.
#define DROP drop_packet()
#define INPUT_PORT ((bit<32>)(PortIdUint_t)istd.input_port)

#define COUNTER(name, size) Counter<bit<64>, bit<32>>(size, PNA_CounterType_t.PACKETS) name;
#define COUNT(name, index) name.count(index)

#define REGISTER(name, size) Register<bit<32>, bit<32>>(size, 0) name;
#define READ(result, name, index) result = name.read(index)
#define WRITE(name, index, value) name.write(index, value)

// CRC-32C of DPDK, over bytes in the order of the processor: not the number that v1model calculates.
#define HASH(name) Hash<bit<32>>(PNA_HashAlgorithm_t.CRC32) name;
#define CALCULATE(result, name, ...) result = name.get_hash({__VA_ARGS__})

// p4c-dpdk writes PNA's numbers of colours, DPDK reads its own: green is 0, yellow 1, red 2.
#define METER(name, size) Meter<bit<32>>(size, PNA_MeterType_t.BYTES) name;
#define COLOUR PNA_MeterColor_t
#define MEASURE(colour, name, index, length) colour = name.dpdk_execute(index, PNA_MeterColor_t.RED, length)
#define IS_YELLOW(colour) (colour == PNA_MeterColor_t.GREEN)
#define IS_RED(colour) (colour == PNA_MeterColor_t.YELLOW)

// The sum over the whole header is the only one that InternetChecksum of p4c-dpdk gets right.
#define IPV4_CHECKSUM_UNIT InternetChecksum() checksum_unit;
#define UPDATE_IPV4_CHECKSUM(ip) \
    if (ip.isValid()) { \
        ip.checksum = 0; \
        checksum_unit.clear(); \
        checksum_unit.add(ip); \
        ip.checksum = checksum_unit.get(); \
    }

#else
#include <v1model.p4>

#define PARSER parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta, \
                                  inout standard_metadata_t standard_metadata)
#define CONTROL control MainControl(inout headers_t hdr, inout metadata_t meta, \
                                    inout standard_metadata_t standard_metadata)
#define DEPARSER control FrameDeparser(packet_out packet, in headers_t hdr)

#define PORT bit<9>
#define SEND(port) standard_metadata.egress_spec = port
#define DROP mark_to_drop(standard_metadata)
#define INPUT_PORT ((bit<32>)standard_metadata.ingress_port)

#define COUNTER(name, size) counter(size, CounterType.packets) name;
#define COUNT(name, index) name.count(index)

#define REGISTER(name, size) register<bit<32>>(size) name;
#define READ(result, name, index) name.read(result, index)
#define WRITE(name, index, value) name.write(index, value)

#define HASH(name)
#define CALCULATE(result, name, ...) \
    hash(result, HashAlgorithm.crc32, 32w0, {__VA_ARGS__}, 64w0x100000000)

#define METER(name, size) meter(size, MeterType.bytes) name;
#define COLOUR bit<32>
#define MEASURE(colour, name, index, length) name.execute_meter(index, colour)
#define IS_YELLOW(colour) (colour == 1)
#define IS_RED(colour) (colour == 2)

// Calculated behind the egress control, see package.p4.
#define IPV4_CHECKSUM_UNIT
#define UPDATE_IPV4_CHECKSUM(ip)
#endif

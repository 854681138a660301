"""The port of a device: orders of frame sizes, room for stamps, CPUs, and the arguments of the harness."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.errors import CapabilityError
from p4perf.programs.component import build_workload
from p4perf.programs.packets import headers_size_bytes
from p4perf.targets.base import NodeFacts
from p4perf.targets.dpdk_c import DpdkCTarget
from p4perf.targets.link import STAMP_BYTES, LinkPlan, check_link, check_stamp_room, interleaved, load_arguments

MIXES = st.dictionaries(st.integers(64, 9216), st.integers(1, 40), min_size=1, max_size=8).map(
    lambda mix: tuple(sorted(mix.items()))
)
TWO = NodeFacts({"cpus_allowed": "0-1"})


class TestInterleaved:
    def test_the_simple_mix(self):
        order = interleaved(((64, 7), (594, 4), (1518, 1)))
        assert Counter(order) == {64: 7, 594: 4, 1518: 1}
        assert (64, 64, 64) not in zip(order, order[1:], order[2:], strict=False)
        assert (594, 594) not in pairwise(order)

    def test_equal_weights_take_turns(self):
        assert interleaved(((64, 2), (128, 2), (256, 2))) == (64, 128, 256) * 2

    @given(MIXES)
    def test_every_size_comes_as_often_as_it_weighs(self, mix):
        assert Counter(interleaved(mix)) == dict(mix)

    @given(MIXES)
    def test_every_size_is_spread_evenly(self, mix):
        """Nowhere is a size ahead of its share by a whole frame, or behind it by as many as there are sizes."""
        order, total = interleaved(mix), sum(weight for _, weight in mix)
        seen = Counter()
        for n, size in enumerate(order, 1):
            seen[size] += 1
            for some, weight in mix:
                share = n * weight / total
                assert seen[some] - share < 1
                assert share - seen[some] < len(mix)

    @given(st.integers(1, 60), st.integers(1, 60))
    def test_of_two_sizes_none_is_ever_off_by_a_frame(self, a, b):
        order, seen = interleaved(((64, a), (128, b))), 0
        for n, size in enumerate(order, 1):
            seen += size == 64
            assert abs(seen - n * a / (a + b)) < 1


class TestStampRoom:
    @pytest.fixture
    def workload(self):
        def make(frame_size, headers=0):
            components = [("parser_headers", {"headers": headers})] if headers else [("l2fwd", {})]
            return build_workload(components, frame_size_bytes=frame_size)

        return make

    def test_the_smallest_frame_of_ethernet_has_room(self, workload):
        check_stamp_room(workload(64), LinkPlan())

    def test_the_edge(self, workload):
        spacious = workload(1518, headers=12)
        needed = headers_size_bytes(spacious.program, spacious.packets) + STAMP_BYTES + 4
        check_stamp_room(spacious, LinkPlan(sizes_bytes=(needed, 1518)))
        with pytest.raises(CapabilityError) as caught:
            check_stamp_room(spacious, LinkPlan(sizes_bytes=(1518, needed - 1)))
        assert caught.value.message.startswith(f"a frame of {needed - 1} B has no room for {needed - 20} B of headers")
        assert caught.value.hint == f"use a frame size of at least {needed} B"
        assert caught.value.key == "traffic.frame_size"

    def test_without_a_mix_the_frame_size_counts(self, workload):
        large = workload(128, headers=20)
        needed = headers_size_bytes(large.program, large.packets) + STAMP_BYTES + 4
        assert needed > 100  # else this tests nothing
        check_stamp_room(workload(needed, headers=20), LinkPlan())
        with pytest.raises(CapabilityError, match=f"a frame of {needed - 1} B has no room"):
            check_stamp_room(workload(needed - 1, headers=20), LinkPlan())


class TestCpus:
    @pytest.mark.parametrize(
        ("allowed", "isolated", "found"),
        [
            ("0-3", "", (3, 2, 1, 0)),
            ("0-3", "1-2", (1, 2, 3, 0)),
            ("0,2,5", "", (5, 2, 0)),
            ("0-1,4-5", "4", (4, 5, 1, 0)),
            ("0-1", "2-3", (1, 0)),
            ("0-1", "(null)", (1, 0)),
            ("7", "", (7,)),
            ("", "", ()),
            ("some", "", ()),
            (" 0-1, 3\n", "", (3, 1, 0)),
        ],
    )
    def test_isolated_ones_come_first_then_the_last_ones(self, allowed, isolated, found):
        assert NodeFacts({"cpus_allowed": allowed, "isolated_cpus": isolated}).cpus == found

    def test_without_facts_there_is_none(self):
        assert NodeFacts({}).cpus == ()


def parts(arguments):
    """The arguments between dashes; they end with dashes, behind which those of the point come."""
    found, part = [], []
    for argument in arguments:
        if argument == "--":
            found.append(part)
            part = []
        else:
            part.append(argument)
    assert not part
    return found


def after(words, option):
    return words[words.index(option) + 1]


class TestArguments:
    @pytest.mark.parametrize("kind", ["ring", "memif", "af-packet"])
    @pytest.mark.parametrize("allowed", ["", "0", "3"])
    def test_one_cpu_is_too_few(self, kind, allowed):
        with pytest.raises(CapabilityError) as caught:
            load_arguments(LinkPlan(kind), 1 << 20, NodeFacts({"cpus_allowed": allowed}))
        assert "need a CPU each" in caught.value.message
        assert caught.value.key == "load"
        assert "taskset" in caught.value.hint

    def test_rings_connect_two_cores_of_one_process(self):
        eal, device, words = parts(load_arguments(LinkPlan("ring", 512), 64 << 20, NodeFacts({"cpus_allowed": "0-3"})))
        assert sorted(after(eal, "-l").split(",")) == ["2", "3"]
        assert after(eal, "--main-lcore") == "2"  # the device has the best core, 3
        assert int(after(eal, "-m")) >= 64
        assert "--no-huge" in eal
        assert device == []
        assert words == ["slots=512"]

    @pytest.mark.parametrize("kind", ["memif", "af-packet"])
    def test_other_links_connect_two_processes(self, kind):
        facts = NodeFacts({"cpus_allowed": "0-3", "isolated_cpus": "1"})
        eal, device, words = parts(load_arguments(LinkPlan(kind, 256), 64 << 20, facts))
        assert (after(eal, "-l"), after(device, "-l")) == ("3", "1")
        assert after(eal, "--file-prefix") != after(device, "--file-prefix")
        assert int(after(device, "-m")) >= 64
        ports = [after(part, "--vdev").partition(",") for part in (eal, device)]
        name = ports[0][0]
        assert ports[1][0] == name
        assert words == ["slots=256", f"port={name}", f"veth={int(kind == 'af-packet')}"]
        assert ports[0][2] != ports[1][2]

    def test_the_two_ends_of_memif_meet(self):
        eal, device, _ = parts(load_arguments(LinkPlan("memif", 256), 1 << 20, TWO))
        ends = [dict(p.split("=", 1) for p in after(part, "--vdev").split(",")[1:]) for part in (eal, device)]
        assert [end.pop("role") for end in ends] == ["client", "server"]
        assert ends[0] == ends[1]
        assert ends[0]["socket"].startswith("{folder}/")

    @pytest.mark.parametrize("slots", [32, 33, 256, 1000, 1024, 1025, 32768])
    def test_a_ring_of_memif_has_a_power_of_two_of_slots_that_suffices(self, slots):
        eal, _, _ = parts(load_arguments(LinkPlan("memif", slots), 1 << 20, TWO))
        size = 2 ** int(dict(p.split("=", 1) for p in after(eal, "--vdev").split(",")[1:])["rsize"])
        assert slots <= size < 2 * slots

    def test_the_ends_of_af_packet_are_those_of_a_pair(self):
        eal, device, _ = parts(load_arguments(LinkPlan("af-packet", 128), 1 << 20, TWO))
        ends = [dict(p.split("=", 1) for p in after(part, "--vdev").split(",")[1:]) for part in (eal, device)]
        assert [end["iface"] for end in ends] == ["generator", "device"]
        assert {end["framecnt"] for end in ends} == {"128"}

    @pytest.mark.parametrize("kind", ["ring", "memif", "af-packet"])
    def test_sizes_are_told_without_the_check_sequence(self, kind):
        *_, words = parts(load_arguments(LinkPlan(kind, 64, (64, 594, 1518)), 1 << 20, TWO))
        assert "sizes=60,590,1514" in words


class TestTargets:
    def test_a_link_that_a_target_lacks(self):
        with pytest.raises(CapabilityError) as caught:
            check_link("dpdk-c", ("memif",), LinkPlan("ring"))
        assert caught.value.message == "target dpdk-c has no port for the link ring"
        assert (caught.value.key, caught.value.hint) == ("load.link", "it has memif")
        check_link("dpdk-c", ("memif",), LinkPlan("memif"))

    def test_the_command_of_a_device(self, facts):
        """Program of the point, link, point and oracle, in the order in which the harness reads them."""
        target, some = DpdkCTarget(), facts(cpus_allowed="0-1")
        from p4perf.programs.component import TrafficPlan

        workload = build_workload([("match_action_table", {"entries": 10})], frame_size_bytes=64)
        plan = target.plan(workload, TrafficPlan(64), some)
        link = LinkPlan("ring", 64)
        job = target.load(plan, link, some)
        head = ("{build}/dpdk-c", "load", *load_arguments(link, plan.memory_bytes, some))
        assert job.argv[: len(head)] == head
        assert job.argv[-2:] == ("--verify", "{folder}/verify.bin")
        assert job.files["verify.bin"]
        assert job.build == plan.build
        with pytest.raises(CapabilityError, match="has no port for the link wire"):
            target.load(plan, LinkPlan("wire"), some)
        with pytest.raises(CapabilityError, match="a CPU each"):
            target.load(plan, link, facts(cpus_allowed="0"))

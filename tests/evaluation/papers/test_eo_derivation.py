"""Programs as sequences of elementary operations: what packets of the workload meet."""

from collections import Counter

import pytest

from p4perf.errors import CapabilityError
from p4perf.evaluation.papers.baldi2018 import load_hardware
from p4perf.evaluation.prediction.operations import derive
from p4perf.experiment import point_workload
from p4perf.models.eo import estimate
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.ir import ApplyTable, CallAction, ParserState
from p4perf.programs.packets import frame
from p4perf.specs import load_experiment
from p4perf.specs.loader import list_catalogue


def calls(component, parameters, frame_bytes=64, hit_ratio=1.0, **options):
    """Operations in the notation -> how often a packet meets them."""
    workload = build_workload([(component, parameters)], frame_size_bytes=frame_bytes)
    function = derive(workload, TrafficPlan(frame_bytes, hit_ratio=hit_ratio), **options)
    found = Counter()
    for call in function.calls:
        found[str(call)] += float(call.times)
    return found


def test_the_baseline():
    assert calls("l2fwd", {}) == {"I/O_mem(14, 46)": 1, "extract(14)": 1, "mem_I/O(14, 46)": 1}


def test_parser_states():
    found = calls("parser_headers", {"headers": 3, "header_bits": 32})
    assert (found["extract(14)"], found["extract(4)"]) == (1, 3)
    assert found["parse(2)"] == 1  # EtherType
    assert found["parse(1)"] == 2  # the last header announces nothing
    assert found["branch()"] == 3


def test_an_exact_match():
    found = calls("match_action_table", {"entries": 1000, "key_bits": 128, "action_data_bytes": 64})
    assert found["ht_lookup(2, 80, 1000)"] == 1
    assert found["draw(16)"] == 1
    assert found["sum(4)"] == 15
    assert "draw(16)" not in calls("match_action_table", {"entries": 1000}, local=False)


def test_other_matches():
    lpm = calls("match_action_table", {"match_kind": "lpm", "entries": 10, "key_bits": 32, "action_data_bytes": 8})
    assert lpm["lpm_lookup(3, 8, 10)"] == 1
    ternary = calls("match_action_table", {"match_kind": "ternary", "entries": 10, "key_bits": 128})
    assert ternary["list_lookup(32, 10)"] == 1


def test_a_miss_reads_no_data_and_is_predicted_wrong_now_and_then():
    table = {"entries": 1000, "key_bits": 128, "action_data_bytes": 64, "hit_ratio": 0.75}
    found = calls("match_action_table", table, hit_ratio=0.75)
    assert found["ht_lookup(2, 80, 1000)"] == 0.75
    assert found["ht_lookup(2, 16, 1000)"] == 0.25
    assert found["branch(2, 0.25)"] == 1


def test_fields_are_parsed_and_deparsed_once():
    found = calls("arithmetic", {"operations": 10})
    assert (found["parse(4)"], found["deparse(4)"], found["sum(4)"]) == (2, 1, 20)


def test_what_all_packets_do_is_predicted():
    found = calls("conditionals", {"conditionals": 8})
    assert found["branch()"] == 8 + 1
    varied = calls("parser_branches", {"branches": 4, "depth": 2, "header_bits": 32}, 128)
    assert varied["branch(5, 0.75)"] == 1


def test_externs():
    assert calls("hash", {"algorithm": "crc32", "size_bytes": 20})["crc32(20)"] == 1
    assert calls("checksum", {"operation": "update", "size_bytes": 20})["checksum(20)"] == 1
    assert calls("counter", {"updates": 3, "size": 1024}, 128)["array_access(8, 1024)"] == 3
    assert calls("clone", {"copies": 2})["clone(60)"] == 2
    assert calls("multicast", {"ports": 4}, 128)["multicast(3)"] == 1
    assert calls("random", {"numbers": 2}, 128)["random(4)"] == 2


def test_headers_that_are_added_move_the_others():
    found = calls("added_headers", {"headers": 3, "header_bytes": 2})
    assert (found["move(14)"], found["move(2)"], found["resize()"], found["deparse(2)"]) == (1, 3, 1, 3)
    assert found["mem_I/O(20, 46)"] == 1


def test_every_pass_counts():
    once, thrice = calls("recirculate", {"times": 0}), calls("recirculate", {"times": 2})
    assert thrice["extract(14)"] == 3 * once["extract(14)"]
    assert thrice["I/O_mem(18, 42)"] == 1


WITHOUT = {
    "operator/": "operator",
    "vio/": "virtual I/O",
    "composition/functions": "entries one by one",
    "composition/large-functions": "entries one by one",
}


@pytest.mark.parametrize("name", [e.name for e in list_catalogue() if e.name.startswith(tuple(WITHOUT))])
def test_what_no_operation_describes_has_no_estimate(name):
    experiment = load_experiment(name, points=2)
    workload, traffic = point_workload(experiment, experiment.points[0])
    construct = next(word for prefix, word in WITHOUT.items() if name.startswith(prefix))
    with pytest.raises(CapabilityError, match=f"{name} has no estimate.* {construct} "):
        derive(workload, traffic, name=name)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [e.name for e in list_catalogue() if not e.name.startswith(tuple(WITHOUT))])
def test_every_experiment_has_an_estimate(name):
    experiment = load_experiment(name, points=2)
    workload, traffic = point_workload(experiment, experiment.points[0])
    found = estimate([derive(workload, traffic)], load_hardware("xeon-e5-2690v2"))
    assert found.breakdown.cycles.value > 76  # what receiving and sending cost


def test_the_interpreter_tells_what_a_packet_meets():
    workload = build_workload([("match_action_table", {"entries": 4})], frame_size_bytes=64)
    met = []
    interpreter = Interpreter(workload.program, watch=lambda what, outcome: met.append((what, outcome)))
    interpreter.run(frame(workload.program, workload.packets, 3))
    interpreter.run(frame(workload.program, workload.packets, 4))
    states = [(what.name, outcome) for what, outcome in met if isinstance(what, ParserState)]
    assert states[0][0] == "start"
    assert states[-1][1] == "accept"
    assert [outcome for what, outcome in met if isinstance(what, ApplyTable)] == [True, False]
    assert all(outcome is None for what, outcome in met if isinstance(what, CallAction))

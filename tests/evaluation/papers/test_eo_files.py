"""Descriptions of machines and functions: the numbers of the paper, and mistakes with line and key."""

import pytest

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.papers.baldi2018 import function_names, hardware_names, load_function, load_hardware
from p4perf.models.eo import DRAM, estimate

XEON = "xeon-e5-2690v2"

MACHINE = """\
eo_version: 1
name: small
clock: 2 GHz
caches:
  L1: {size: 32 KiB, latency_cycles: 4}
memory: {size: 1 GiB}
constants:
  word: {value: 3, low: 2, high: 4}
operations:
  parse: {cycles: word * ceil(b / 8)}
  ht_lookup: {cycles: 50, accesses: 1, table: max * HE}
"""

FUNCTION = """\
eo_version: 1
name: mine
frame_size: 128 B
symbols: {ps: frame - 18}
operations:
  - parse(ps)
  - {do: "ht_lookup(1, 12, 1K)", times: 0.5}
"""


def written(tmp_path, text):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    return str(path)


# --- the paper


@pytest.mark.parametrize(
    ("name", "cycles", "accesses"), [("switch/basic", 211, 1), ("switch/learning", 377, 3), ("switch/mpls", 222, 1)]
)
def test_the_printed_formulas(name, cycles, accesses):
    breakdown = estimate([load_function(name)], load_hardware(XEON, "formula")).breakdown
    assert (breakdown.cycles.value, breakdown.dram_accesses) == (cycles, accesses)


@pytest.mark.parametrize("name", ["switch/basic", "switch/learning", "switch/mpls", "bng/access", "bng/core"])
def test_the_printed_numbers(name):
    """Cycles, accesses and Gbit/s are those of the paper; its Mpps are 1.024 times ours (it mixed 1000 and 1024)."""
    function = load_function(name)
    printed = function.printed
    found = estimate([function], load_hardware(XEON, "paper"))
    assert found.breakdown.cycles.value == printed.cycles
    assert found.breakdown.dram_accesses == printed.dram_accesses
    assert round(found.gbps, 2) == printed.gbps
    assert found.mpps_per_core * 1.024 == pytest.approx(printed.mpps, abs=0.01)
    assert found.bound == "cpu"


def test_the_paper_on_packets_of_78_bytes():
    """6 cores, both directions at equal packet rates: 42.5 Mpps, with the slip of the other printed rates."""
    paper = load_hardware(XEON, "paper")
    access, core = (
        estimate([load_function(n)], paper, frame_bytes=78).breakdown.cycles.value for n in ("bng/access", "bng/core")
    )
    assert (access, core) == (717 + 49, 274)
    assert 1.024 * 6 * paper.clock_hz / ((access + core) / 2) / 1e6 == pytest.approx(42.5, abs=0.1)


def test_half_of_the_packets_in_the_other_socket():
    """Section 4.2: on average two cycles and one access more, for 78 bytes."""
    function, xeon = load_function("switch/basic"), load_hardware(XEON, "formula")
    near = estimate([function], xeon, symbols={"ps": 48}).breakdown
    far = estimate([function], xeon, symbols={"ps": 48}, remote=0.5).breakdown
    assert ((far.cycles - near.cycles).value, far.dram_accesses - near.dram_accesses) == (2, 1)


def test_the_gateway_says_that_it_is_reconstructed():
    assert all("Reconstructed" in load_function(n).remarks[0] for n in function_names() if n.startswith("bng/"))


def test_small_tables_are_in_cache():
    function = load_function("switch/basic")
    (lookup,) = [c for c in function.calls if c.table]
    assert lookup.table == "forwarding"
    assert DRAM in estimate([function], load_hardware(XEON)).breakdown.accesses


# --- files


def test_files_load(tmp_path):
    machine, function = load_hardware(written(tmp_path, MACHINE)), load_function(written(tmp_path, FUNCTION))
    found = estimate([function], machine)
    assert found.frame_bytes == 128
    assert [line.cycles.value for line in found.breakdown.lines] == [14 * 3, 25]
    assert (found.breakdown.cycles.low, found.breakdown.cycles.high) == (14 * 2 + 25, 14 * 4 + 25)


def test_unknown_names_are_told():
    with pytest.raises(UsageError) as failure:
        load_hardware("xeon-e5-2690")
    assert f"did you mean {XEON}?" in str(failure.value)
    with pytest.raises(UsageError) as failure:
        load_function("switch/base")
    assert "did you mean switch/basic?" in str(failure.value)
    with pytest.raises(UsageError, match="no profile 'papers'"):
        load_hardware(XEON, "papers")
    assert hardware_names() == (XEON,)


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message"),
    [
        ("  parse: {cycles: word", "  pars: {cycles: word", 10, "operations.pars", "no elementary operation 'pars'"),
        ("word * ceil(b / 8)", "words * ceil(b / 8)", 10, "operations.parse.cycles", "neither a parameter of parse(b)"),
        ("word * ceil(b / 8)", "word * ceil(b", 10, "operations.parse.cycles", "is no expression"),
        ("32 KiB", "32 KiX", 5, "caches.L1.size", "there is no unit 'KiX'"),
        ("32 KiB", "-1", 5, "caches.L1.size", "must be more than 0"),
        ("32 KiB", "-32 KiB", 5, "caches.L1.size", "must be more than 0"),
        ("L1: {", "L4: {", 5, "caches.L4", "is not one of"),
        ("{value: 3, low: 2", "{value: 3, low: 5", 8, "constants.word", "does not hold the value 3"),
        ("{value: 3, low: 2, high: 4", "{value: inf", 8, "constants.word.value", "finite"),
        ("  word:", "  L2:", 8, "constants.L2", "is the latency of a level"),
        ("clock: 2 GHz", "clock: 2 GB", 3, "clock", "is a data size, not a frequency"),
        ("clock: 2 GHz\n", "", 1, None, "the key 'clock' is missing"),
        ("name: small", "name: small\ncolour: red", 3, "colour", "unknown key 'colour'"),
        ("eo_version: 1", "eo_version: 2", 1, "eo_version", "is not 1"),
    ],
)
def test_mistakes_in_machines_are_told_with_their_place(tmp_path, old, new, line, key, message):
    assert old in MACHINE
    path = written(tmp_path, MACHINE.replace(old, new, 1))
    with pytest.raises(DataError) as failure:
        load_hardware(path)
    error = failure.value
    assert message in error.message
    assert (error.location.file, error.location.line, error.key) == (path, line, key)


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message"),
    [
        ("parse(ps)", "parse(px)", 6, "operations.0", "there is no symbol 'px'"),
        ("parse(ps)", "pars(ps)", 6, "operations.0.do", "no elementary operation 'pars'"),
        ("times: 0.5", "times: 0", 7, "operations.1.times", "must be more than 0"),
        ("1K)", "1K, 0, 3)", 7, "operations.1.do", "takes 3 to 4 arguments, not 5"),
        ("{ps: frame - 18}", "{ps: fram - 18}", 4, "symbols.ps", "there is no symbol 'fram'"),
        ("{ps:", "{frame: 9, ps:", 4, "symbols.frame", "is the frame size"),
        ("128 B", "20 B", 3, "frame_size", "must be at least 64"),
    ],
)
def test_mistakes_in_functions_are_told_with_their_place(tmp_path, old, new, line, key, message):
    assert old in FUNCTION
    with pytest.raises(DataError) as failure:
        load_function(written(tmp_path, FUNCTION.replace(old, new, 1)))
    error = failure.value
    assert message in error.message
    assert (error.location.line, error.key) == (line, key)


@pytest.mark.parametrize("text", ["", "[]", "a: [", "\0", "a: !!python/object:os.system b", "name: a\nname: b"])
def test_what_is_no_description_is_refused(tmp_path, text):
    with pytest.raises(DataError):
        load_hardware(written(tmp_path, text))


def test_files_that_are_not_there_are_told(tmp_path):
    with pytest.raises(DataError, match="there is no such"):
        load_hardware(str(tmp_path / "none.yaml"))
    with pytest.raises(DataError, match="there is no such"):
        load_function(str(tmp_path / "none.yaml"))

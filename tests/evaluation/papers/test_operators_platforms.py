"""Platforms as data: files of users, and clear errors."""

import pytest

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.papers.ren2025 import load_platforms
from p4perf.evaluation.papers.ren2025.costs import OperatorCosts, StatedLaw

GOOD = """\
source: measured by hand
packet_size_bytes: [64, 1500]
platforms:
  Our switch:
    title: a processor, 3 GHz
    operators:
      CRC: {base_cycles: 20, exponent: 1.1, same_as: [rte_net_crc]}
      lookup:
        cycles: {128: 61.5, 64: [60, 61, 62]}
        resolution_cycles: 1.5
"""


def write(folder, text):
    file = folder / "ours.yaml"
    file.write_text(text)
    return str(file)


def refused(folder, text):
    with pytest.raises(DataError) as caught:
        load_platforms(write(folder, text))
    return str(caught.value)


def test_both_forms(tmp_path):
    (platform,) = load_platforms(write(tmp_path, GOOD))
    assert (platform.name, platform.title, platform.published) == ("Our switch", "a processor, 3 GHz", False)
    law, costs = platform.operators
    assert isinstance(law, StatedLaw)
    assert (law.law.base_cycles, law.law.exponent, law.sizes_bytes) == (20, 1.1, (64, 1500))
    assert law.same_as == ("rte_net_crc",)
    assert isinstance(costs, OperatorCosts)
    assert (costs.packet_size_bytes, costs.cycles) == ((64, 128), ((60, 61, 62), (61.5,)))
    assert costs.resolution_cycles == (1.5, 1.5)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("source: measured by hand\n", "", 1, "the key 'source' is missing"),
        ("source:", "sauce:", 1, "did you mean source?"),
        ("base_cycles: 20,", "", 7, "base_cycles and exponent, or cycles"),
        ("base_cycles: 20,", "base_cycles: 0,", 7, "more than 0"),
        ("base_cycles: 20,", "base_cycles: many,", 7, "expected a number, got 'many'"),
        ("exponent: 1.1", "exponent: 1.1, cycles: {64: 1}", 7, "base_cycles and exponent, or cycles"),
        ("exponent: 1.1", "exponent: 1.1, resolution_cycles: 1", 7, "resolution_cycles belongs to cycles"),
        ("resolution_cycles: 1.5", "r_squared: 0.9", 10, "r_squared belongs to"),
        ("64: [60, 61, 62]", "64: []", 9, "needs one value at least"),
        ("64: [60, 61, 62]", "small: [60]", 9, "does not match the pattern"),
        ("64: [60, 61, 62]", "64: [60, fast]", 9, "expected a number, got 'fast'"),
        ("CRC:", "CRC+lookup:", 7, "cannot have a + in it"),
        ("[64, 1500]", "[64, 1500.5]", 2, "expected a whole number"),
        ("source: measured by hand", "source: [", 1, "this is not YAML"),
    ],
)
def test_errors_name_file_line_and_key(tmp_path, old, new, line, said):
    assert old in GOOD
    text = refused(tmp_path, GOOD.replace(old, new))
    assert text.startswith(f"{tmp_path}/ours.yaml:{line}:"), text
    assert said in text


def test_a_platform_without_operators(tmp_path):
    assert "platforms.x.operators" in refused(tmp_path, "source: s\nplatforms: {x: {operators: {}}}\n")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match="there is no such platform file"):
        load_platforms(str(tmp_path / "none.yaml"))
    with pytest.raises(UsageError, match="did you mean ren2025") as caught:
        load_platforms("ren2024")
    assert "no published platform and no file 'ren2024'" in str(caught.value)
    with pytest.raises(DataError, match="there is no such platform file"):
        load_platforms(str(tmp_path))

"""What calibrations of earlier sessions say of an undisturbed core."""

import json
from pathlib import Path

import pytest

from p4perf.experiment.gates import FILE, KEPT, known_before
from p4perf.targets.base import NodeFacts
from p4perf.targets.windows import Undisturbed
from p4perf.testbeds.local import LocalTestbed, NetnsTestbed, state_folder

FACTS = NodeFacts({"cpu_id": "25-17", "cpu_model": "a processor"})
CALM, BUSY = Undisturbed(0.3955, 8.45), [Undisturbed(0.44 + 0.03 * n, 8.47) for n in range(6)]


@pytest.fixture(autouse=True)
def _notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def place(tmp_path: Path) -> LocalTestbed:
    return LocalTestbed(tmp_path / "cache")


def test_a_session_beside_a_neighbour_knows_what_earlier_ones_agreed_on(place: LocalTestbed) -> None:
    assert known_before([CALM, CALM], place, FACTS) == []  # two cores of one session are not enough
    known_before([Undisturbed(0.3951, 8.45), CALM], place, FACTS)
    (known,) = known_before(BUSY[:2], place, FACTS)
    assert known.gate_ratio == 0.3951
    assert known.chain_tsc == pytest.approx(8.45, rel=0.025)


def test_disturbed_cores_do_not_agree(place: LocalTestbed) -> None:
    for one in BUSY:
        assert known_before([one], place, FACTS) == []


def test_one_ratio_that_is_too_low_is_not_believed(place: LocalTestbed) -> None:
    known_before([Undisturbed(0.3, 8.45), CALM, CALM, CALM], place, FACTS)
    (known,) = known_before([CALM], place, FACTS)
    assert known.gate_ratio == 0.3955


def test_machines_and_clocks_are_kept_apart(place: LocalTestbed, tmp_path: Path) -> None:
    known_before([CALM] * 4, place, FACTS)
    assert known_before([], place, NodeFacts({"cpu_id": "another"})) == []
    found = known_before([Undisturbed(0.31, 12.0)] * 4, place, FACTS)
    assert sorted(each.gate_ratio for each in found) == [0.31, 0.3955]
    assert known_before([CALM] * 4, NetnsTestbed(tmp_path / "cache"), FACTS) == []


def test_few_are_kept(place: LocalTestbed) -> None:
    for _ in range(3):
        known_before([*[CALM] * 9, *BUSY], place, FACTS)
    (clocks,) = json.loads((state_folder() / FILE).read_text()).values()
    assert clocks == {"44": [0.3955] * KEPT}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"25-17 a processor": 3}', '{"25-17 a processor": {"x": [1]}}', "\\udc00"]
)
def test_a_damaged_file_says_nothing(place: LocalTestbed, text: str) -> None:
    known_before([CALM] * 4, place, FACTS)
    (state_folder() / FILE).write_text(text)
    assert known_before([], place, FACTS) == []
    assert len(known_before([CALM] * 4, place, FACTS)) == 1


def test_a_folder_that_cannot_be_written_does_no_harm(place: LocalTestbed) -> None:
    state_folder().parent.mkdir(parents=True)
    state_folder().write_text("in the way")
    assert known_before([CALM] * 4, place, FACTS)[0].gate_ratio == 0.3955

"""Reversible settings, on files that stand in for those of the kernel."""

import json
import os

import pytest

from p4perf.errors import DataError, StorageError, TestbedError
from p4perf.testbeds import tuning
from p4perf.testbeds.tuning import SettingChange, apply, read_record, undo, undo_record, wanted_settings


@pytest.fixture
def settings(tmp_path, monkeypatch):
    pages, autogroup = tmp_path / "nr_hugepages", tmp_path / "sched_autogroup_enabled"
    pages.write_text("10\n")
    autogroup.write_text("1\n")
    monkeypatch.setattr(tuning, "SETTINGS", (str(pages), str(autogroup)), raising=False)
    return {pages: "500", autogroup: "0"}


@pytest.fixture
def record(tmp_path):
    return tmp_path / "state" / "undo.json"


def values(settings):
    return [path.read_text().strip() for path in settings]


def test_apply_and_undo(settings, record):
    changes = apply(settings, record)
    assert [(c.before, c.after) for c in changes] == [("10", "500"), ("1", "0")]
    assert values(settings) == ["500", "0"]
    assert read_record(record) == changes
    back = undo(record)
    assert [(c.before, c.after) for c in back] == [("500", "10"), ("0", "1")]
    assert values(settings) == ["10", "1"]
    assert not record.exists()


def test_the_record_is_there_before_anything_is_changed(settings, record, monkeypatch):
    seen = []
    monkeypatch.setattr(tuning, "_write_setting", lambda path, value: seen.append(len(read_record(record))))
    apply(settings, record)
    assert seen == [2, 2]


def test_if_the_record_cannot_be_written_nothing_is_changed(settings, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write") as caught:
        apply(settings, tmp_path / "file" / "undo.json")
    assert caught.value.hint == "nothing was changed"
    assert values(settings) == ["10", "1"]


def test_hugepages_are_never_reduced(settings, record):
    pages = next(iter(settings))
    pages.write_text("900\n")
    assert [c.path for c in apply(settings, record)] == [str(p) for p in settings if p != pages]
    assert pages.read_text() == "900\n"


def test_what_is_right_already_is_left_alone(settings, record):
    for path, value in settings.items():
        path.write_text(value)
    assert apply(settings, record) == []
    assert not record.exists()


def test_applying_twice_still_leads_back_to_the_beginning(settings, record):
    apply(settings, record)
    pages = next(iter(settings))
    again = apply({pages: "800"}, record)
    assert [(c.before, c.after) for c in again] == [("500", "800")]
    undo(record)
    assert values(settings) == ["10", "1"]


def test_undo_without_a_record_changes_nothing(settings, record):
    assert undo(record) == []
    assert values(settings) == ["10", "1"]


def test_a_setting_that_this_machine_lacks_is_left_out(settings, record, tmp_path):
    changes = apply({**settings, tmp_path / "not" / "there": "1"}, record)
    assert len(changes) == 2
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"changes": 3}', '{"changes": [{"path": "/x"}]}', '{"changes": ["x"]}']
)
def test_a_damaged_record_is_told_and_nothing_is_changed(settings, record, text):
    record.parent.mkdir()
    record.write_text(text)
    for call in (lambda: undo(record), lambda: apply(settings, record)):
        with pytest.raises(DataError, match="is not an undo record") as caught:
            call()
        assert caught.value.location.file == str(record)
    assert values(settings) == ["10", "1"]
    assert record.read_text() == text


def test_a_setting_that_may_not_be_changed(record, tmp_path, monkeypatch):
    folder = tmp_path / "setting"
    folder.mkdir()
    monkeypatch.setattr(tuning, "SETTINGS", (str(folder),))
    record.parent.mkdir()
    record.write_text(json.dumps({"changes": [{"path": str(folder), "before": "1", "after": "0"}]}))
    with pytest.raises(TestbedError, match="cannot set") as caught:
        undo(record)
    assert caught.value.hint == "run as root"
    assert record.exists(), "it can be tried again as root"


def test_at_most_a_quarter_of_the_memory_is_reserved():
    pages = [wanted_settings(available)[tuning.HUGEPAGES] for available in (None, 64 << 30, 1 << 30, 0)]
    assert pages == ["2048", "2048", "128", "0"]


def test_where_the_record_is(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert undo_record() == tmp_path / "p4perf" / "undo.json"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert str(undo_record()) == "/home/somebody/.local/state/p4perf/undo.json"


def test_changes_read_back_as_they_were(settings, record):
    assert all(isinstance(c, SettingChange) for c in apply(settings, record))
    assert json.loads(record.read_text())["changes"][1]["before"] == "1"


class TestRecordsFromElsewhere:
    @pytest.mark.parametrize("value", ["1", "evil"])
    def test_only_the_settings_that_p4perf_makes_are_set_back(self, settings, record, tmp_path, value):
        precious, (pages, _) = tmp_path / "precious", settings
        precious.write_text("mine")
        record.parent.mkdir()
        names = [str(pages), str(precious)] if value == "1" else [str(pages)]
        record.write_text(json.dumps({"changes": [{"path": name, "before": value, "after": "0"} for name in names]}))
        with pytest.raises(DataError, match="which p4perf never does"):
            undo(record)
        assert precious.read_text() == "mine"
        assert values(settings) == ["10", "1"]

    def test_a_record_of_another_user_is_not_taken(self, settings, record, monkeypatch):
        apply(settings, record)
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
        with pytest.raises(DataError, match="belongs to another user"):
            undo(record)
        assert values(settings) == ["500", "0"]

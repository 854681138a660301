"""The file of models that can be gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p4perf.errors import DataError, StorageError, UsageError
from p4perf.evaluation.fitting.component import fit
from p4perf.evaluation.fitting.many.lines import ModelLines
from p4perf.models.component import ComponentModel

MODELS = [fit(range(1, 9), [k + 2 * x for x in range(1, 9)], resamples=0).model for k in range(3)]
LABELS = [{"metric": "cycles", "k": str(k)} for k in range(3)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of three models."""
    with ModelLines(tmp_path / "new" / "models.jsonl") as lines:
        for labels, model in zip(LABELS, MODELS, strict=True):
            lines.append(labels, "mark", model)
    return lines.path


def test_every_line_is_a_model_with_labels(path: Path) -> None:
    texts = path.read_text().splitlines()
    assert [json.loads(text)["labels"] for text in texts] == LABELS
    assert [ComponentModel.from_json(text) for text in texts] == MODELS


def test_going_on(path: Path) -> None:
    with ModelLines(path) as lines:
        assert len(lines) == 3
        assert lines.has(LABELS[1], "mark")
        assert not lines.has({"metric": "other"}, "mark")
        lines.append({"metric": "other"}, "mark", MODELS[0])
        assert [lines.read(labels) for labels in (LABELS[2], {"metric": "other"})] == [MODELS[2], MODELS[0]]
        with pytest.raises(UsageError, match=r"models\.jsonl:2: this series was fitted from other data") as caught:
            lines.has(LABELS[1], "another mark")
        assert "--restart" in str(caught.value)
    assert path.read_text().count("\n") == 4


@pytest.mark.parametrize("keep", [1, 5, 10, 11, 50, -1])
def test_a_torn_line_is_written_over(path: Path, keep: int) -> None:
    whole = path.read_bytes()
    first, second, third = whole.splitlines(keepends=True)
    path.write_bytes(first + second + third[:keep])
    with ModelLines(path) as lines:
        assert len(lines) == 2
        assert not lines.has(LABELS[2], "mark")
        lines.append(LABELS[2], "mark", MODELS[2])
        assert lines.read(LABELS[2]) == MODELS[2]
    assert path.read_bytes() == whole


def test_beginning_anew(path: Path) -> None:
    with ModelLines(path, restart=True) as lines:
        assert len(lines) == 0
        assert not lines.has(LABELS[0], "other")
    assert path.read_bytes() == b""


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("text", ["n,value\n1,2\n", '{"a": 1}', "x", "\n"])
def test_files_of_others_are_left_alone(tmp_path: Path, text: str, restart: bool) -> None:
    path = tmp_path / "precious.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"precious\.jsonl:1: not a file of models; it is left unchanged"):
        ModelLines(path, restart=restart)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"labels":{},"fingerprint":"x"}', ":2: is not a model with labels"),
        ('{"labels":{"a":"b"},', ":2:21: is not valid JSON"),
    ],
)
def test_damaged_lines(path: Path, line: str, message: str) -> None:
    first, _, third = path.read_text().splitlines()
    text = "\n".join([first, line, third, ""])
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        ModelLines(path)
    assert path.read_text() == text
    with ModelLines(path, restart=True):
        pass


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("text", ["", "models"])
def test_a_link_is_neither_emptied_nor_appended_to(path: Path, tmp_path: Path, text: str, restart: bool) -> None:
    precious = tmp_path / "precious"
    precious.write_text(text and path.read_text())
    before = precious.read_text()
    (tmp_path / "link.jsonl").symlink_to(precious)
    with pytest.raises(StorageError, match=r"link\.jsonl: it is a symbolic link"):
        ModelLines(tmp_path / "link.jsonl", restart=restart)
    assert precious.read_text() == before


def test_one_writer_at_a_time(path: Path) -> None:
    with ModelLines(path), pytest.raises(StorageError, match="is being written by another process"):
        ModelLines(path, restart=True)
    assert path.read_text().count("\n") == 3


def test_a_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    with ModelLines(path) as lines:
        written = []

        def write(handle: int, data: memoryview) -> int:
            written.append(len(data))
            if len(written) > 1:
                raise OSError(28, "No space left on device")
            return real(handle, data[:7])

        real = __import__("os").write
        monkeypatch.setattr("p4perf.evaluation.fitting.many.lines.os.write", write)
        with pytest.raises(StorageError, match="the disk is full"):
            lines.append({"k": "new"}, "mark", MODELS[0])
        monkeypatch.undo()
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        ModelLines(tmp_path / "file" / "models.jsonl")

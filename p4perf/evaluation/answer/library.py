"""Which cost models there are, by ``target@machine``: files, those of a folder, and those that ship with p4perf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from p4perf.errors import DataError, Location, TargetUnavailableError, UsageError
from p4perf.evaluation.answer.cost_files import is_cost_model, parse_cost_model
from p4perf.evaluation.answer.prediction import TargetModel
from p4perf.results.files import read_text
from p4perf.specs.messages import nearest

FOLDER = Path("models")
"""Where models of one's own are looked for."""

Origin = Literal["folder", "reference"]
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Entry:
    """A model that can be used.

    Args:
        model: the model.
        origin: the folder of models, or the reference models of p4perf.
        file: where it is.
    """

    model: TargetModel
    origin: Origin
    file: str

    @property
    def name(self) -> str:
        """``target@machine``."""
        return self.model.name


def available_models(folder: Path = FOLDER) -> tuple[Entry, ...]:
    """The models of a folder, then those that ship with p4perf as far as the folder has none of their name.

    Files of the folder that are no cost models of programs are passed over.

    Raises:
        DataError: a cost model is damaged or of another version.
    """
    found: dict[str, Entry] = {}
    for origin, file in (*(("folder", f) for f in _own(folder)), *(("reference", f) for f in _reference())):
        text = _text(file)
        if not is_cost_model(text):
            continue
        where = str(file) if origin == "folder" else f"reference/{file.name}"
        model = parse_cost_model(text, where)
        if origin == "reference":
            model = replace(model, origin="reference")
        found.setdefault(model.name, Entry(model, "folder" if origin == "folder" else "reference", where))
    return tuple(found.values())


def open_models(given: Sequence[str], targets: Sequence[str] = (), folder: Path = FOLDER) -> tuple[TargetModel, ...]:
    """The models that are asked for.

    Args:
        given: files, or names such as ``dpdk-c@xeon``; none: all of the folder, or if it has none, all that ship.
        targets: only models of these targets (``dpdk-swx`` stands for its variants, too).
        folder: where models of one's own lie.

    Raises:
        UsageError: there is no such model.
        DataError: a model is damaged or of another version.
        TargetUnavailableError: there is no model for a target.
    """
    if given:
        models = [_given(text, folder) for text in given]
    else:
        entries = available_models(folder)
        own = [e for e in entries if e.origin == "folder"]
        models = [e.model for e in entries if e.origin == "folder" or not own or not _covered(e, own, targets)]
    if not targets:
        if not models:
            raise TargetUnavailableError("there is no cost model", hint=_LEARN)
        return tuple(models)
    found: list[TargetModel] = []
    for target in dict.fromkeys(targets):
        matching = [m for m in models if _is_of(m.target, target)]
        if not matching:
            known = ", ".join(sorted({m.target for m in models})) or "no target"
            raise TargetUnavailableError(
                f"there is no cost model for target {target}, only for {known}", hint=_LEARN.replace("TARGET", target)
            )
        found += [m for m in matching if m not in found]
    return tuple(found)


_LEARN = "p4perf learn --target TARGET measures one"


def _covered(entry: Entry, own: Sequence[Entry], targets: Sequence[str]) -> bool:
    """Whether models of one's own make a reference model unnecessary."""
    if not targets:
        return True
    return any(_is_of(e.model.target, t) for e in own for t in targets if _is_of(entry.model.target, t))


def _is_of(target: str, wanted: str) -> bool:
    return target == wanted or target.partition(":")[0] == wanted


def _given(text: str, folder: Path) -> TargetModel:
    path = Path(text)
    if path.is_file():
        content = read_text(path)
        if not is_cost_model(content):
            raise DataError(
                "is no cost model of programs", location=Location(text), hint="p4perf learn makes such models"
            )
        return parse_cost_model(content, text)
    entries = available_models(folder)
    matching = [e for e in entries if text in (e.name, e.model.machine)]
    if len(matching) == 1:
        return matching[0].model
    names = [e.name for e in entries]
    if matching:
        raise UsageError(f"{text} can be {', '.join(e.name for e in matching)}")
    raise UsageError(f"there is no model {text!r}, and no such file", hint=nearest(text, names, "there are"))


def _own(folder: Path) -> list[Traversable]:
    if not folder.is_dir():
        return []
    return [f for f in sorted(folder.iterdir()) if f.suffix == _SUFFIX and f.is_file()]


def _reference() -> list[Traversable]:
    root = files("p4perf.models") / "reference"
    if not root.is_dir():
        return []
    return sorted((f for f in root.iterdir() if f.name.endswith(_SUFFIX)), key=lambda f: f.name)


def _text(file: Traversable) -> str:
    if isinstance(file, Path):
        return read_text(file)
    return file.read_text(encoding="utf-8")

"""Runs by name: ``latest``, ``latest~2``, or the beginning of the name or the time of a run, in campaigns too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from p4perf.errors import DataError, Location, UsageError
from p4perf.records import Record, counted, doc, duration_text, mismatch
from p4perf.results.campaign import RUNS
from p4perf.results.manifest import mapping_of
from p4perf.results.run import Run, run_folders

FOLDER = Path("runs")
"""Where runs are looked for, relative to the current directory."""

_LATEST = re.compile(r"latest(?:~(\d+))?")
_LISTED = 5
"""Runs that are listed where a name fits several."""


def all_run_folders(folder: Path) -> list[Path]:
    """Run directories in a folder, sorted by name, and behind them those of the campaigns and reproductions in it."""
    inside = [run for each in (folder, *_record_folders(folder)) for run in run_folders(each / RUNS)]
    return [*run_folders(folder), *inside]


def _record_folders(folder: Path) -> list[Path]:
    """Folders with runs of their own: campaigns and reproductions."""
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    return [each for each in inside if each.name[:1] != "." and (each / RUNS).is_dir()]


def find_run(name: str | Path, folder: Path = FOLDER) -> Path:
    """The path that a name stands for: itself if it is there, else a run of a folder or of the current directory.

    A name that fits none is returned as it is: whoever opens it says what it should have been.

    Args:
        name: a path, ``latest``, ``latest~N`` (N runs before it), or the beginning of the name of a run or campaign,
            or of the time at the end of it; with a folder before it, in that folder.

    Raises:
        UsageError: there are fewer runs, or the name fits several.
    """
    path, text = Path(name), str(name)
    if path.exists():
        return path
    places = [folder, Path()]
    if "/" in text:
        places, text = [path.parent], path.name
    runs, campaigns = next(
        (found for each in places if any(found := (all_run_folders(each), _record_folders(each)))), ([], [])
    )
    if latest := _LATEST.fullmatch(text):
        return _newest(runs, int(latest[1] or 0), text, places[0])
    named = [each for each in (*runs, *campaigns) if any(part.startswith(text) for part in _names(each))]
    if len(named) > 1:
        listed = ", ".join(map(str, named[:_LISTED])) + (" ..." if len(named) > _LISTED else "")
        what = f"{counted(len(named), 'run')} have names or times that begin with {text}: {listed}"
        raise UsageError(what, hint="write more of the name, or latest, latest~1 ...")
    return named[0] if named else path


def _names(path: Path) -> tuple[str, str]:
    return path.name, path.name.rpartition("--")[2]


def _newest(paths: Sequence[Path], back: int, name: str, folder: Path) -> Path:
    """The run that began ``back`` runs before the newest one; damaged ones do not count."""
    times = []
    for path in paths:
        try:
            run = Run.open(path)
        except DataError:
            continue
        times.append((run.identity.created, run.directory.spec_file.stat().st_mtime_ns, path))
    if back >= len(times):
        what = f"there are only {counted(len(times), 'run')}" if times else "there are no runs"
        raise UsageError(f"{name}: {what} in {folder}", hint="p4perf list runs shows the runs, p4perf run makes one")
    return sorted(times, reverse=True)[back][2]


def siblings(run: Run) -> tuple[Run, ...]:
    """The runs of other targets that the command of a run made with it: of each target the one nearest in time."""
    command, found = run.directory.manifest().get("command"), dict[str, list[Run]]()
    for path in sorted(run.path.parent.glob(f"{run.path.name.partition('--')[0]}--*")) if command else ():
        with suppress(DataError):
            other = Run.open(path)
            if other.directory.manifest().get("command") == command:
                found.setdefault(other.identity.target, []).append(other)
    found.pop(run.identity.target, None)
    began = datetime.fromisoformat(run.identity.created)

    def distance(other: Run) -> timedelta:
        return abs(datetime.fromisoformat(other.identity.created) - began)

    return tuple(min(each, key=distance) for each in found.values())


class RunSummary(Record):
    """Which run it is, and how far it has come."""

    run: str = doc("path of the run directory", of="path")
    experiment: str = doc("name of the experiment")
    target: str = doc("target")
    testbed: str = doc("testbed")
    created: str = doc("time of its beginning")
    points: int = doc("planned points")
    finished: int = doc("points that need no more trials; with enough for the accuracy, those with any")
    trials: int = doc("trials on disk, rejected ones too")
    wanted: int | None = doc("least number of accepted trials that complete all planned points; null if unknown")
    complete: bool = doc("whether all points are finished, or enough for the accuracy")
    accuracy: float | None = doc("requested largest relative error; null if all points are measured", "ratio")
    error: float | None = doc("largest relative error so far, with 90 % confidence; null if unknown", "ratio")
    in_progress: bool = doc("whether a process is measuring it now")
    left_s: float | None = doc("estimated time until it is complete; null if unknown", "s")
    imported: str | None = doc("importer of an [imported](fitting.md#results-of-other-tools) run; null if measured")

    @classmethod
    def of(cls, run: Run) -> RunSummary:
        """The summary of a run, from its manifest and the names of its files."""
        identity, state = run.identity, run.directory.state()
        manifest = run.directory.manifest()
        design, repetitions = mapping_of(manifest.get("design")), mapping_of(manifest.get("trials")).get("repetitions")
        wanted = repetitions * len(state.planned) if isinstance(repetitions, int) else None
        left_s = design.get("left_s")
        if state.complete:
            left_s = 0.0
        elif not design and state.trials and wanted is not None:
            left = max(wanted - state.trials, len(state.missing))
            left_s = round(left * state.spent_s / state.trials, 1)
        found = cls.read(
            identity,
            run=run.path,
            points=len(state.planned),
            finished=len(state.finished),
            trials=state.trials,
            wanted=wanted,
            complete=state.complete,
            accuracy=design.get("accuracy"),
            error=design.get("error"),
            in_progress=not state.complete and run.directory.in_progress,
            left_s=left_s,
            imported=None if identity.imported is None else identity.imported.importer,
        )
        if wrong := mismatch(cls, found.as_dict()):
            raise DataError(f"is damaged: {wrong}", location=Location(str(run.directory.manifest_file)))
        return found

    @property
    def state(self) -> str:
        """For people: ``finished``, ``not finished``, how long it still takes, or the importer."""
        if self.imported is not None:
            return f"imported ({self.imported})"
        if self.in_progress:
            return "in progress" + ("" if self.left_s is None else f", about {duration_text(self.left_s)} left")
        if not self.complete:
            return "not finished"
        reached = self.accuracy is not None and self.error is not None and self.error <= self.accuracy
        return f"finished to {100 * self.accuracy:.3g} %" if self.accuracy and reached else "finished"

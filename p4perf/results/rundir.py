"""The run directory: where everything lies, and how it gets there unharmed."""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from p4perf.errors import DataError, Location, UsageError
from p4perf.formats.plain import shown
from p4perf.results import files
from p4perf.results import manifest as manifests
from p4perf.results.manifest import Manifest, RunIdentity, RunState

if TYPE_CHECKING:
    import pandas as pd

_POINT_HASH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

_SPEC = "spec.yaml"
_MANIFEST = "manifest.json"
_POINTS = "points"
_PLOTS = "plots"
_MEASUREMENTS = "measurements.parquet"
_MODEL = "model.json"
_JOURNAL = "raw.jsonl"
_FINISHED = "finished.json"

RECORD_FILES = (_JOURNAL, _FINISHED)
"""Files of a point that only the run directory writes."""


class RunDirectory:
    """One run on disk. Make it with :meth:`create` or :meth:`open`.

    Every write is atomic and durable: a failure is a :class:`~p4perf.errors.StorageError`, and the old file stays. A
    file that is missing or damaged is a :class:`~p4perf.errors.DataError` with file, line and key. A path or hash that
    leads out of the directory, or a value that strict JSON cannot hold, is a :class:`~p4perf.errors.UsageError`.

    Hold :meth:`lock` while a sweep is measured, so that two processes never measure into the same run.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()  # other processes may have another working directory
        self._journals: dict[str, Journal] = {}

    @override
    def __repr__(self) -> str:
        return f"RunDirectory({str(self._path)!r})"

    @classmethod
    def create(
        cls,
        parent: Path,
        *,
        experiment_name: str,
        target: str,
        testbed: str,
        resolved_spec: str,
        manifest: Mapping[str, Any],
        now: datetime,
        fill: Callable[[RunDirectory], None] | None = None,
    ) -> RunDirectory:
        """Make a new run directory below ``parent`` (which is made if need be).

        The folder is called ``<experiment>--<target>--<testbed>--<YYYYMMDDTHHMMSS>``, with ``-2``, ``-3`` and so on
        if that is taken, and appears all at once. ``/`` and what is unfit for a folder name becomes ``-``.

        Args:
            manifest: what else to record: versions, hashes, machine, options; ``planned_points`` is the list of the
                hashes of all points, if it is known. The keys ``schema_version``, ``experiment``, ``target``,
                ``testbed`` and ``created`` are set here.
            now: the time for the folder name, as it is, and for ``created``, in UTC (without a zone: local time).
            fill: writes what else belongs into the run before it appears; if it raises, nothing is left behind.
        """
        text = manifests.new_manifest(experiment_name, target, testbed, now, manifest)

        def fill_folder(folder: Path) -> None:
            files.write_text_atomically(folder / _SPEC, resolved_spec)
            files.write_text_atomically(folder / _MANIFEST, text)
            (folder / _POINTS).mkdir()
            if fill is not None:
                fill(cls(folder))

        return cls(files.new_folder(parent / files.dated_name((experiment_name, target, testbed), now), fill_folder))

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run directory, for reading it or for resuming.

        Raises:
            DataError: it is not a run directory, is damaged, or was made by a newer version; says which file and key.
        """
        where = Location(str(path))
        try:
            found = path.is_dir(), (path / _MANIFEST).is_file()
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", location=where) from error
        if not found[0]:
            near = _near_run(path) or "p4perf list runs shows the runs"
            raise DataError("there is no such run directory", location=where, hint=near)
        if not found[1]:
            inside = sorted(entry.parent.name for entry in path.glob(f"[!.]*/{_MANIFEST}"))
            hint = f"it contains {len(inside)} run directories; the last by name is {inside[-1]}" if inside else None
            if (path / "runs").is_dir():
                hint = f"it is a campaign: name its runs, {shown(path / 'runs')}/*; p4perf show lists them"
            raise DataError(f"is not a run directory: it has no {_MANIFEST}", location=where, hint=hint)
        run = cls(path)
        run.manifest()
        if not run.spec().strip():
            raise DataError("the file is empty", location=Location(str(path / _SPEC)))
        return run

    @property
    def path(self) -> Path:
        return self._path

    @property
    def spec_file(self) -> Path:
        return self._path / _SPEC

    @property
    def manifest_file(self) -> Path:
        return self._path / _MANIFEST

    @property
    def model_file(self) -> Path:
        return self._path / _MODEL

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only process that writes this run, for the body; released by the kernel if the process is killed.

        Temporary files that killed processes left behind are removed. Not re-entrant.

        Raises:
            StorageError: another process holds the lock (the message names it), it cannot be taken, or there is a
                symbolic link in the run.
        """
        with files.exclusive(self._path / files.LOCK, str(self._path)):
            files.take_over(self._path)
            yield

    @property
    def in_progress(self) -> bool:
        """Whether a process holds :meth:`lock`."""
        return files.is_held(self._path / files.LOCK)

    # --- spec and manifest

    def spec(self) -> str:
        return files.read_text(self._path / _SPEC)

    def manifest(self) -> dict[str, Any]:
        return manifests.read_manifest(self._path / _MANIFEST)

    def identity(self) -> RunIdentity:
        return RunIdentity(**manifests.identity_of(self.manifest()))

    def record(self) -> Manifest:
        return manifests.typed_manifest(self.manifest(), self._path / _MANIFEST)

    def update_manifest(self, changes: Mapping[str, Any]) -> None:
        """Set some keys of the manifest, at once; the other keys stay."""
        manifests.refuse_own_keys(changes)
        files.write_text_atomically(self._path / _MANIFEST, files.json_text(self.manifest() | dict(changes)))

    def note(self, key: str, entry: Mapping[str, Any], **changes: Any) -> None:
        """Append an entry to a list in the manifest and set other keys, all at once."""
        self.update_manifest({**changes, key: [*self.manifest().get(key, []), dict(entry)]})

    # --- any file

    def locate(self, relpath: str) -> Path:
        """Where a file of the run lies, there or not. ``relpath`` is POSIX, relative to the run directory.

        Raises:
            UsageError: the path is empty, absolute, or leads out of the run directory (by ``..`` or a link).
        """
        pure = PurePosixPath(relpath)
        path = self._path / pure
        inside = "\0" not in relpath and pure.parts and not pure.is_absolute() and ".." not in pure.parts
        if not inside or not files.real(path).is_relative_to(files.real(self._path)):
            raise UsageError(f"{relpath!r} is not a path inside the run directory {self._path}")
        return path

    def write_text(self, relpath: str, text: str | Iterable[str]) -> Path:
        """Write a text file, given whole or in pieces (UTF-8, line ends as they are). Returns its place."""
        path = self.locate(relpath)
        files.write_text_atomically(path, text)
        return path

    def write_bytes(self, relpath: str, data: bytes | Iterable[bytes]) -> Path:
        path = self.locate(relpath)
        files.write_atomically(path, (data,) if isinstance(data, bytes) else data)
        return path

    def read_text(self, relpath: str) -> str:
        return files.read_text(self.locate(relpath))

    # --- points and trials

    def points(self) -> list[str]:
        """Hashes of the points that have a folder, sorted."""
        folder = self._path / _POINTS
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []

    def point_directory(self, point_hash: str) -> Path:
        path = self._point(point_hash)
        with files.storing(path):
            if not path.is_dir():
                path.mkdir(parents=True, exist_ok=True)
                files.sync_directory(path.parent)
        return path

    def write_point_file(self, point_hash: str, name: str, data: str | bytes) -> Path:
        """Write a file beside the trials of a point. Returns its place."""
        where = f"{_POINTS}/{point_hash}/{name}"
        return self.write_text(where, data) if isinstance(data, str) else self.write_bytes(where, data)

    def write_point_texts(self, point_hash: str, texts: Mapping[str, str]) -> None:
        """Write files beside the trials of a point, all at once: each waits for the disk."""
        with ThreadPoolExecutor(max(1, len(texts))) as pool:
            list(pool.map(partial(self.write_point_file, point_hash), texts, texts.values()))

    def point_texts(self, point_hash: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """Names and contents of text files beside the trials of a point, sorted; what is no text is left out."""
        folder = self._path / _POINTS / point_hash
        if point_hash not in self.points() or not files.real(folder).is_relative_to(files.real(self._path)):
            return
        for path in sorted(folder.iterdir()):
            if wanted(path.name) and path.is_file() and not path.is_symlink():
                with contextlib.suppress(DataError):
                    yield path.name, files.read_text(path)

    def append_trial(self, point_hash: str, record: Mapping[str, Any]) -> None:
        """Put the record of one trial on disk; when this returns, it is safe from any crash.

        ``record["trial"]`` is an object with the whole numbers ``repetition`` and ``attempt``, both from 0.
        """
        self.point_directory(point_hash)
        self._journal(point_hash).append(record)

    def trials(self, point_hash: str) -> list[dict[str, Any]]:
        """The records of all trials of a point, in order of time. A line cut off by a kill is ignored."""
        return self._journal(point_hash).records()

    def finish_point(self, point_hash: str, outcome: Mapping[str, Any]) -> None:
        """Note that a point needs no more trials; ``outcome`` says how it went."""
        files.write_text_atomically(self._point(point_hash) / _FINISHED, files.json_text(outcome))

    def outcome(self, point_hash: str) -> dict[str, Any] | None:
        """What :meth:`finish_point` noted; None if the point is not finished."""
        path = self._point(point_hash) / _FINISHED
        return files.parse_object(files.read_text(path), path) if path.exists() else None

    def state(self, planned: Iterable[str] | None = None) -> RunState:
        """How far the run has come: ``planned`` or, without it, the ``planned_points`` of the manifest."""
        done = False
        if planned is None:
            manifest = self.manifest()
            known = manifest.get("planned_points")
            planned = known if isinstance(known, list) else [""]
            done = bool(manifests.mapping_of(manifest.get("design")).get("done"))
            if not all(isinstance(point, str) and _POINT_HASH.fullmatch(point) for point in planned):
                where = Location(str(self._path / _MANIFEST))
                raise DataError("is missing or not a list of hashes", location=where, key="planned_points")
        plan = tuple(planned)
        trials = {point: self.trials(point) for point in plan}
        finished = tuple(p for p in plan if (done and trials[p]) or (self._point(p) / _FINISHED).exists())
        took = [t.get("duration_s") for each in trials.values() for t in each]
        spent_s = sum(float(s) for s in took if isinstance(s, int | float))
        return RunState(plan, finished, sum(map(len, trials.values())), done, spent_s)

    # --- what is derived

    def write_measurements(self, table: pd.DataFrame) -> Path:
        """Write the tidy table as Parquet, without its index. Returns its place."""
        buffer = io.BytesIO()
        try:
            table.to_parquet(buffer, engine="pyarrow", index=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"the table cannot be written as Parquet: {error}") from error
        return self.write_bytes(_MEASUREMENTS, buffer.getvalue())

    def read_measurements(self) -> pd.DataFrame:
        import pyarrow.parquet as pq  # here, so that what only lists runs starts at once

        path = self._path / _MEASUREMENTS
        where = Location(str(path))
        if not path.exists():
            hint = "it is being measured; p4perf status shows how long" if self.in_progress else None
            raise DataError(
                "the run has no measurements yet", location=where, hint=hint or "p4perf resume continues it"
            )
        data = files.read_bytes(path)
        try:
            # Without threads: Arrow's, still running when the interpreter ends, now and then abort the process. The
            # function read_table starts one in any case.
            with files.bounded(where):  # a small file can hold a table of any size
                table = pq.ParquetFile(io.BytesIO(data), pre_buffer=False).read(use_threads=False)
                table.validate(full=True)  # a text of damaged UTF-8 would only be met where it is used
                frame: pd.DataFrame = table.to_pandas(use_threads=False)
                return frame
        except (OSError, TypeError, ValueError) as error:
            raise DataError(f"is not a Parquet table: {error}", location=where) from error

    def write_model(self, text: str) -> Path:
        return self.write_text(_MODEL, text)

    def plot_path(self, name: str) -> Path:
        """Where the plot file ``name`` belongs (say, ``cost.svg``); its folder is there."""
        path = self.locate(f"{_PLOTS}/{name}")
        if path.parent != self._path / _PLOTS:
            raise UsageError(f"{name!r} is not a plain file name")
        with files.storing(path.parent):
            path.parent.mkdir(exist_ok=True)
        return path

    # --- inside

    def _point(self, point_hash: str) -> Path:
        if not _POINT_HASH.fullmatch(point_hash):
            raise UsageError(f"{point_hash!r} is not a point hash")
        return self.locate(f"{_POINTS}/{point_hash}")

    def _journal(self, point_hash: str) -> Journal:
        if point_hash not in self._journals:
            self._journals[point_hash] = Journal(self._point(point_hash) / _JOURNAL)
        return self._journals[point_hash]


_Signature = tuple[int, int, int]


class Journal:
    """An append-only file of trial records.

    A record is a JSON object with a key ``trial``: an object with the whole numbers ``repetition`` and ``attempt``,
    both from 0, and whatever else distinguishes trials. It identifies the trial; no two records share it.

    A last line without its line end was cut off by a kill: it was never acknowledged, is not read, and is truncated
    away by the next append.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: set[str] = set()
        self._signature: _Signature | None = None

    def append(self, record: Mapping[str, Any]) -> None:
        """Put one record on disk. When this returns, the record survives a crash of the process or the machine.

        Raises:
            UsageError: the record is not strict JSON, has no valid ``trial``, or that trial is there already.
        """
        line = files.strict_json(dict(record)).encode() + b"\n"
        identity = _identity(record)
        with self._open() as handle:
            end = self._recall(handle)
            if identity in self._known:
                raise UsageError(f"trial {identity} is in {self.path} already", key="trial")
            with files.storing(self.path):
                try:
                    files.write_all(handle, line)
                    os.fsync(handle)
                    if end == 0:
                        files.sync_directory(self.path.parent)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.ftruncate(handle, end)
                        os.fsync(handle)
                    raise
                self._known.add(identity)
                self._signature = _signature(handle)

    def records(self) -> list[dict[str, Any]]:
        """All acknowledged records in order of time; none if nothing was ever appended."""
        return _parse(files.read_bytes(self.path), self.path) if self.path.exists() else []

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        """The journal for appending, locked, so that no other process truncates what is being written."""
        handle = files.open_to_change(self.path, os.O_APPEND)
        try:
            with files.storing(self.path):
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)

    def _recall(self, handle: int) -> int:
        """Read the file if another process changed it, and drop a torn line; its size in bytes."""
        if _signature(handle) != self._signature:
            data = files.read_bytes(self.path)
            self._known = {_identity(record) for record in _parse(data, self.path)}
            end = data.rfind(b"\n") + 1
            with files.storing(self.path):
                if end < len(data):
                    os.ftruncate(handle, end)
                    os.fsync(handle)
            self._signature = _signature(handle)
        return os.fstat(handle).st_size


def _signature(handle: int) -> _Signature:
    stat = os.fstat(handle)
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _near_run(path: Path) -> str | None:
    """A hint for a run that is not there: ``latest``, or the run whose name begins most alike."""
    folders = (path.parent,) if path.parent.name else (Path(), Path("runs"))
    runs = [file.parent for folder in folders for file in folder.glob(f"[!.]*/{_MANIFEST}")]
    known = {"latest": "latest"} | {run.name[: len(path.name)]: shown(run) for run in runs}
    close = difflib.get_close_matches(path.name, known, n=1, cutoff=0.75)
    return f"did you mean {known[close[0]]}?" if close else None


def _identity(record: Mapping[str, Any]) -> str:
    trial = record.get("trial")
    if not isinstance(trial, dict):
        raise UsageError("a trial record needs the object 'trial' with repetition and attempt", key="trial")
    for name in ("repetition", "attempt"):
        number = trial.get(name)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise UsageError(f"{number!r} is not a whole number from 0", key=f"trial.{name}")
    return json.dumps(trial, sort_keys=True)


def _parse(data: bytes, path: Path) -> list[dict[str, Any]]:
    records = []
    seen: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        where = Location(str(path), number)
        record = files.parse_object(line, path, line=number)
        try:
            identity = _identity(record)
        except UsageError as error:
            raise DataError(error.message, location=where, key=error.key) from error
        if identity in seen:
            raise DataError(f"repeats the trial of line {seen[identity]}", location=where, key="trial")
        seen[identity] = number
        records.append(record)
    return records

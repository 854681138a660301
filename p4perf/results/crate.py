"""The description of a folder of results for others: RO-Crate metadata, a JSON-LD file at the root of the folder.

Written as the specification RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) and the profile Process Run Crate 0.5
(https://w3id.org/ro/wfrun/process/0.5) ask: the folder is a ``Dataset`` of ``File`` entities with ``encodingFormat``,
``contentSize`` and ``sha256``, and of a ``Dataset`` for each run where there are several. Every run in it is the result
of a ``CreateAction`` whose ``instrument`` is p4perf in the version that measured, whose ``object`` are the spec and the
facts of the machine, and whose ``result`` is the rest of the run. Nothing is invented: who published it, and under
which licence, stands there only if somebody said so.

The text depends on the content of the files and on the options alone: same folder, same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from p4perf.errors import DataError, Location, UsageError
from p4perf.results import files
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.crate_graph import APACHE, Entity, Graph, file_entity, file_id, licence_entity, reference
from p4perf.results.crate_options import CrateOptions
from p4perf.results.inventory import METADATA_FILE, FileEntry, inventory
from p4perf.results.manifest import read_manifest
from p4perf.results.rundir import RunDirectory
from p4perf.version import __version__

CONTEXT = ("https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context")
CRATE = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"

FACTS = (
    *("cpu_model", "cpu_id", "microcode", "machine", "virtual_machine", "cpus", "memory_total_bytes"),
    *("cache_l1_bytes", "cache_l2_bytes", "cache_l3_bytes", "kernel", "system"),
    *("dpdk_version", "cc_version", "clang_version", "libbpf_version"),
)
"""Facts of a node that go into the description; all of them stand in the manifest of the run."""


@dataclass(frozen=True)
class _Run:
    """A run directory below the folder; ``folder`` is relative to it, ``""`` for the folder itself."""

    folder: str
    manifest: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.manifest['experiment']} on {self.manifest['target']} ({self.manifest['testbed']})"


def crate_metadata(folder: Path, options: CrateOptions | None = None) -> str:
    """The text of ``ro-crate-metadata.json`` for a folder.

    Run directories are found at any depth. The folder may hold anything else, too: a campaign, a comparison, a report.

    Args:
        folder: what is described; nothing is written.
        options: what it cannot say itself.

    Raises:
        DataError: the folder or something in it cannot be read, is a link, or a run in it is damaged.
        UsageError: there is no run in it that says when it was made, and ``published`` is not given.
    """
    return describe(folder, inventory(folder), options or CrateOptions())


def describe(folder: Path, entries: Sequence[FileEntry], options: CrateOptions) -> str:
    """As :func:`crate_metadata`, of files that are known already."""
    runs = _runs(folder, entries)
    graph = Graph()
    actions = [_action(graph, run, entries, options) for run in runs]
    actions += _comparison(graph, folder, entries, options)
    _root(graph, folder, entries, runs, actions, options)
    return files.strict_json({"@context": list(CONTEXT), "@graph": graph.entities}, indent=2) + "\n"


def newest(folder: Path, entries: Iterable[FileEntry]) -> datetime | None:
    """When the newest run in a folder, or of a comparison, was begun; None if there is none."""
    times = [str(run.manifest["created"]) for run in _runs(folder, entries)]
    if (path := folder / "comparison.json").is_file():
        times += [str(run.get("created", "")) for run in _compared(files.parse_object(files.read_text(path), path))]
    known = [time for text in times if (time := _time(text)) is not None]
    return max(known, default=None)


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _runs(folder: Path, entries: Iterable[FileEntry]) -> list[_Run]:
    """The run directories below a folder: those with a manifest and a spec."""
    paths = {entry.path for entry in entries}
    found = []
    for path in sorted(paths):
        above, _, name = path.rpartition("/")
        beside = f"{above}/spec.yaml" if above else "spec.yaml"
        if name == "manifest.json" and beside in paths:
            found.append(_Run(above, read_manifest(folder / path)))
    return found


def _of_run(run: _Run, entries: Iterable[FileEntry]) -> list[FileEntry]:
    return [entry for entry in entries if not run.folder or entry.path.startswith(f"{run.folder}/")]


def _action(graph: Graph, run: _Run, entries: Sequence[FileEntry], options: CrateOptions) -> Entity:
    """What made a run."""
    manifest, prefix = run.manifest, f"{run.folder}/" if run.folder else ""
    spec = f"{prefix}spec.yaml"
    versions, node = _mapping(manifest, "versions"), _mapping(manifest, "node")
    facts = {"target": manifest["target"], "testbed": manifest["testbed"]}
    facts |= {key: node[key] for key in FACTS if isinstance(node.get(key), str | int | float)}
    if isinstance(manifest.get("hugepages"), bool):
        facts["hugepages"] = "yes" if manifest["hugepages"] else "no"
    action: Entity = {
        "@id": f"#run-{quote(run.folder or 'this', safe='')}",
        "@type": "CreateAction",
        "name": run.name,
        "description": _origin(manifest),
        "instrument": graph.software(str(versions.get("p4perf", "unknown"))),
        "object": [reference(file_id(spec)), *(graph.fact(name, str(value)) for name, value in facts.items())],
        "result": _result(run, spec, entries),
    }
    begun, ended = _time(str(manifest["created"])), _ended(manifest)
    if begun is not None:
        action["startTime"] = begun.isoformat(timespec="seconds")
    if ended is not None:
        action["endTime"] = ended.isoformat(timespec="seconds")
    if options.authors:
        action["agent"] = graph.people(options.authors)
    return graph.add(action)


def _result(run: _Run, spec: str, entries: Sequence[FileEntry]) -> list[Entity]:
    """The files of a run, or the folder of one among others."""
    if run.folder:
        return [reference(_dataset_id(run))]
    return [reference(file_id(entry.path)) for entry in entries if entry.path != spec]


def _dataset_id(run: _Run) -> str:
    return f"{file_id(run.folder)}/"


def _mapping(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = manifest.get(key)
    return value if isinstance(value, Mapping) else {}


def _origin(manifest: Mapping[str, Any]) -> str:
    imported = manifest.get("imported")
    if isinstance(imported, Mapping):
        return f"Imported by {imported.get('importer', 'unknown')}, not measured by p4perf."
    return f"Measured on target {manifest['target']}, testbed {manifest['testbed']}."


def _ended(manifest: Mapping[str, Any]) -> datetime | None:
    """When the last session of a run ended."""
    sessions = manifest.get("sessions")
    ends = [s.get("ended") for s in sessions if isinstance(s, Mapping)] if isinstance(sessions, list) else []
    return max((time for end in ends if (time := _time(str(end))) is not None), default=None)


def _comparison(graph: Graph, folder: Path, entries: Sequence[FileEntry], options: CrateOptions) -> list[Entity]:
    """What made a comparison, if the folder is one."""
    path = folder / "comparison.json"
    if not any(entry.path == path.name for entry in entries):
        return []
    runs = _compared(files.parse_object(files.read_text(path), path))
    action: Entity = {
        "@id": "#comparison",
        "@type": "CreateAction",
        "name": "comparison of runs",
        "description": f"Compares {len(runs)} runs.",
        "instrument": graph.software(__version__),
        "object": [graph.fact("run", PurePosixPath(str(run.get("run", "unknown"))).name) for run in runs],
        "result": [reference(file_id(entry.path)) for entry in entries],
    }
    if options.authors:
        action["agent"] = graph.people(options.authors)
    return [graph.add(action)]


def _compared(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The records of the runs of a comparison."""
    experiments = content.get("experiments")
    groups = [e.get("runs") for e in experiments if isinstance(e, Mapping)] if isinstance(experiments, list) else []
    return [run for group in groups if isinstance(group, list) for run in group if isinstance(run, Mapping)]


def _root(
    graph: Graph,
    folder: Path,
    entries: Sequence[FileEntry],
    runs: Sequence[_Run],
    actions: Sequence[Entity],
    options: CrateOptions,
) -> None:
    published = options.published or newest(folder, entries)
    if published is None:
        raise UsageError(f"{folder} holds no run: nothing says when it was made", hint="say when it was published")
    inner = [run for run in runs if run.folder]
    elsewhere = {entry.path for run in inner for entry in _of_run(run, entries)}
    parts = [graph.add(file_entity(entry)) for entry in entries if entry.path not in elsewhere]
    parts += [graph.add(_dataset(run, entries)) for run in inner]
    for entry in entries:
        graph.add(file_entity(entry))
    for address, name in ((CRATE, "RO-Crate"), (PROFILE, "Process Run Crate")):
        graph.add({"@id": address, "@type": "CreativeWork", "name": name, "version": address.rpartition("/")[2]})
    graph.add(
        {
            "@id": METADATA_FILE,
            "@type": "CreativeWork",
            "conformsTo": reference(CRATE),
            "about": reference("./"),
        }
    )
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "conformsTo": reference(PROFILE),
        "name": options.name or _title(folder, runs),
        "description": options.description or _summary(runs, entries),
        "datePublished": published.astimezone(UTC).strftime("%Y-%m-%d"),
        "license": licence_entity(graph, options.licence),
        "hasPart": parts,
    }
    if actions:
        root["mentions"] = list(actions)
    if options.authors:
        root["author"] = graph.people(options.authors)
    graph.add(root)
    if actions:
        graph.add({"@id": APACHE, "@type": "CreativeWork", "name": "Apache-2.0", "description": "Licence of p4perf."})


def _dataset(run: _Run, entries: Sequence[FileEntry]) -> Entity:
    return {
        "@id": _dataset_id(run),
        "@type": "Dataset",
        "name": run.name,
        "description": _origin(run.manifest),
        "hasPart": [reference(file_id(entry.path)) for entry in _of_run(run, entries)],
    }


def _title(folder: Path, runs: Sequence[_Run]) -> str:
    own = [run for run in runs if not run.folder]
    return own[0].name if own else folder.absolute().name


def _summary(runs: Sequence[_Run], entries: Sequence[FileEntry]) -> str:
    experiments = dict.fromkeys(str(run.manifest["experiment"]) for run in runs)
    what = f"{len(runs)} runs of {len(experiments)} experiments" if len(runs) != 1 else "one run"
    return f"Results of p4perf: {what}, {len(entries)} files." if runs else f"Results of p4perf: {len(entries)} files."


def require_results(folder: Path) -> None:
    """Refuse what p4perf did not make.

    Raises:
        DataError: the folder is neither a run directory nor a campaign nor a comparison, or it is a damaged one.
    """
    if not folder.is_dir():
        raise DataError("there is no such folder", location=Location(str(folder)))
    if CampaignDirectory.is_one(folder):
        CampaignDirectory.open(folder)
    elif (path := folder / "comparison.json").is_file():
        if files.parse_object(files.read_text(path), path).get("kind") != "comparison":
            raise DataError("is not the file of a comparison", location=Location(str(path)), key="kind")
    elif (folder / "manifest.json").is_file():
        RunDirectory.open(folder)
    else:
        raise DataError(
            "is neither a run directory nor a campaign nor a comparison of p4perf",
            location=Location(str(folder)),
            hint="p4perf list runs tells which runs there are",
        )

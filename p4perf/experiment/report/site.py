"""The site: what paths name is found, pages are made of it, and all are written at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.report import render_page
from p4perf.evaluation.report.drawing import drawing, thumbnail
from p4perf.evaluation.report.figures import assets, script_json
from p4perf.experiment.compare import target_cautions
from p4perf.experiment.evaluate import COST
from p4perf.experiment.report.history import histories, history_context, history_figure
from p4perf.experiment.report.pages import (
    Compared,
    DocumentPage,
    comparison_context,
    damaged,
    documents,
    missing,
    stored,
)
from p4perf.experiment.report.runs import RunPage, axis_text, read_runs
from p4perf.experiment.sizing import MEASURED, Cell, cell_of
from p4perf.records import counted
from p4perf.results import is_run, run_folders
from p4perf.results.campaign import RUNS, CampaignDirectory
from p4perf.results.files import file_word, json_text, parse_object, read_text, real, replace_folder
from p4perf.version import __version__

_DOCUMENTS = ("comparison.json", "prediction.json", "reproduction.json")


@dataclass
class Sources:
    runs: list[Path] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    """Experiments that campaigns did not measure on a target, with the reason."""
    comparisons: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)
    documents: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)
    """Predictions and claims."""


def find_sources(paths: Sequence[Path]) -> Sources:
    """Everything that the paths hold.

    Raises:
        UsageError: a path is not there, or holds nothing of this kind.
        DataError: a file that says what there is is damaged.
    """
    found = Sources()
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no run directory, folder or file {path}")
        inside = sorted(path.iterdir()) if path.is_dir() else []
        folders = [each for each in inside if each.is_dir() and each.name[:1] != "."]
        if not _add(path, found) and not sum(_add(folder, found) for folder in folders):
            raise UsageError(
                f"{path} holds no run, campaign, comparison, prediction or claims",
                hint="name a run directory, a campaign folder, or a folder that holds some",
            )
    found.runs = list({real(run): run for run in found.runs}.values())
    return found


def _add(path: Path, found: Sources) -> bool:
    """Add what a path is; whether it is anything."""
    if path.is_file():
        return _add_document(path, found)
    if is_run(path):
        found.runs.append(path)
        return True
    if CampaignDirectory.is_one(path):
        _add_campaign(CampaignDirectory.open(path), found)
        return True
    known = [path / name for name in _DOCUMENTS if (path / name).is_file()]
    for file in known:
        _add_document(file, found)
    return bool(known)


def _add_document(file: Path, found: Sources) -> bool:
    content = parse_object(read_text(file), file)
    match content.get("kind"):
        case "comparison":
            found.comparisons.append((file, content))
            found.runs += [run for run in _named_runs(content) if is_run(run)]
        case "predict":
            found.documents.append((file, content))
        case "reproduction":
            found.documents.append((file, content))
            found.runs += run_folders(file.parent / RUNS)
        case _:
            return False
    return True


def _named_runs(content: Mapping[str, Any]) -> list[Path]:
    """The runs of a comparison; none of a damaged one, which the site notes."""
    try:
        return [Path(str(run["run"])) for experiment in content["experiments"] for run in experiment["runs"]]
    except (KeyError, TypeError):
        return []


def _add_campaign(campaign: CampaignDirectory, found: Sources) -> None:
    cells = [cell_of(entry, campaign.file) for entry in campaign.content()["cells"]]
    found.cells += [cell for cell in cells if cell.state != MEASURED]
    named = [campaign.run(cell.run) for cell in cells if cell.run]
    found.runs += [run for run in named if is_run(run)]
    comparison = campaign.path / "comparison" / "comparison.json"
    if comparison.is_file():
        found.comparisons.append((comparison, parse_object(read_text(comparison), comparison)))


MARKER = "p4perf-report.json"
"""The file by which a folder is known as a site of p4perf, which may be replaced."""
SCHEMA_VERSION = 1
KIND = "report"


@dataclass(frozen=True)
class Site:
    path: Path
    pages: Mapping[str, int]
    size_bytes: int
    notes: tuple[str, ...]

    @property
    def index(self) -> Path:
        return self.path / "index.html"


def write_site(
    sources: Sources,
    folder: Path,
    *,
    title: str = "",
    processes: int | None = None,
    progress: Callable[[float], object] = lambda share: None,
) -> Site:
    """Write a site. The same sources give the same bytes.

    Args:
        folder: where; a site of p4perf that is there is replaced.
        processes: how many read runs; by default as many as there are processors.

    Raises:
        DataError: nothing of the sources can be read.
        UsageError: the folder holds something that p4perf did not make.
    """
    pages, notes = read_runs(sources.runs, processes, progress)
    if sources.runs and not pages:
        raise DataError(f"none of {len(sources.runs)} runs can be read: {notes[0]}")
    maker = _Maker(sources, pages, notes, title)
    files = maker.files()
    content = {"schema_version": SCHEMA_VERSION, "kind": KIND, "p4perf": __version__, "pages": maker.counts()}
    files[MARKER] = json_text(content).encode()
    path = replace_folder(folder, files, MARKER)
    progress(1.0)
    return Site(path, maker.counts(), sum(map(len, files.values())), tuple(maker.notes))


class _Maker:
    def __init__(self, sources: Sources, pages: Sequence[RunPage], notes: Sequence[str], title: str) -> None:
        self._cells = sources.cells
        self.notes = list(notes)
        self._pages = sorted(pages, key=lambda p: (p.experiment, p.target, p.testbed, p.created, p.name))
        self._compared, self._ranks = self._comparisons(sources)
        self._documents = documents(sorted(sources.documents, key=lambda each: str(each[1]["kind"])), self.notes)
        self._title = title or self._default_title()
        taken: set[str] = set()
        self._runs = [(_free(f"runs/{file_word(p.name)}", taken), p) for p in self._pages]
        self._comparison_pages = [(_free(f"experiments/{file_word(c.experiment)}", taken), c) for c in self._compared]
        self._document_pages = [(_free(f"{d.folder}/{file_word(d.name)}", taken), d) for d in self._documents]
        self._histories = [
            (_free(f"history/{file_word(h.experiment)}--{file_word(h.target)}", taken), h)
            for h in histories(self._pages)
        ]
        self._run_hrefs = {page.name: href for href, page in reversed(self._runs)}
        self._stored = self._stored_pages()
        compared = [(name, href) for href, each in self._comparison_pages for name in (each.experiment, *each.runs)]
        self._compared_hrefs = dict(reversed(compared))
        self._history_hrefs = {each.page.name: href for href, h in self._histories for each in h.runs}
        self._thumbs = {p.name: thumbnail(p.figure) for p in self._pages if p.figure is not None}

    def counts(self) -> dict[str, int]:
        return {
            "index": 1,
            "matrix": int(self._has_matrix()),
            "run": len(self._pages),
            "comparison": len(self._comparison_pages),
            "history": len(self._histories),
            "document": len(self._document_pages),
        }

    def files(self) -> dict[str, bytes]:
        """All files by their path in the site, with slashes."""
        texts = {"index.html": self._render("index", "index.html", self._index())}
        if self._has_matrix():
            texts["matrix.html"] = self._render("matrix", "matrix.html", self._matrix())
        for href, page in self._runs:
            known = {
                "run": page,
                "comparison": self._comparison_of(page),
                "history": self._history_hrefs.get(page.name, ""),
            }
            texts[href] = self._render("run", href, known | _shown(page.figure, _run_caption(page), "Residuals"))
        for href, history in self._histories:
            caption = (
                "Medians with 95 % intervals at the first and at the last point that all runs have; below, the ratio "
                "of each run to the previous one, over all points, as the gate finds it."
            )
            context = history_context(history, self._run_hrefs) | _shown(history_figure(history), caption, "Ratios")
            texts[href] = self._render("history", href, context)
        return {name: text.encode(errors="replace") for name, text in (texts | self._stored).items()} | {
            f"assets/{name}": data for name, data in assets().items()
        }

    def _stored_pages(self) -> dict[str, str]:
        """The pages of comparisons, predictions and claims; those of damaged ones are left out and noted."""
        by_name = {page.name: page for page in self._pages}
        texts = {}
        both: tuple[list[tuple[str, Any]], ...] = (self._comparison_pages, self._document_pages)
        for pages in both:
            for href, page in list(pages):
                try:
                    texts[href] = self._stored_page(href, page, by_name)
                except (KeyError, TypeError, UndefinedError) as error:
                    self.notes.append(damaged(href, error))
                    pages.remove((href, page))
        return texts

    def _stored_page(self, href: str, page: Compared | DocumentPage, by_name: Mapping[str, RunPage]) -> str:
        if isinstance(page, DocumentPage):
            return self._render(page.template, href, {**page.context, "run_hrefs": self._run_hrefs})
        context = comparison_context(page, by_name, self._run_hrefs)
        caption = (
            "Medians with intervals and the fitted models of all runs; below, the ratio to the reference "
            f"{page.record['reference']}. Every run has its own mark and line."
        )
        return self._render("comparison", href, context | _shown(context["drawn"], caption, "Ratios"))

    def _comparisons(self, sources: Sources) -> tuple[list[Compared], list[Mapping[str, Any]]]:
        found: list[Compared] = []
        ranks: list[Mapping[str, Any]] = []
        for path, content in sources.comparisons:
            try:
                found += stored(content)
                ranks += content["rank_correlations"]
            except (KeyError, ValueError) as error:
                self.notes.append(damaged(path, error))
        more, notes = missing(self._pages, found)
        self.notes += notes
        return sorted([*found, *more], key=lambda c: c.experiment), ranks

    def _comparison_of(self, page: RunPage) -> str:
        """The comparison that the run is in, or else one of its experiment."""
        return self._compared_hrefs.get(page.name) or self._compared_hrefs.get(page.experiment, "")

    def _default_title(self) -> str:
        experiments = {p.experiment for p in self._pages}
        targets = sorted({p.target for p in self._pages})
        if not experiments:
            return self._documents[0].text if len(self._documents) == 1 else "Predictions and claims"
        what = next(iter(experiments)) if len(experiments) == 1 else f"{len(experiments)} experiments"
        return f"{what} on {', '.join(targets)}"

    def _has_matrix(self) -> bool:
        return bool(self._cells) or len({p.experiment for p in self._pages}) > 1

    def _render(self, template: str, href: str, context: Mapping[str, Any]) -> str:
        return render_page(
            f"site/{template}.html.j2",
            **context,
            root="../" * href.count("/"),
            here=href,
            navigation=[{"href": "matrix.html", "text": "Targets and experiments"}] if self._has_matrix() else [],
            site_title=self._title,
            version=__version__,
            interactive=context.get("shown") is not None,
        )

    def _index(self) -> dict[str, Any]:
        accepted, planned = sum(p.accepted for p in self._pages), sum(p.planned for p in self._pages)
        count = len(self._pages)
        lead = f"{counted(count, 'run')}, {accepted} of {planned} planned points have accepted trials."
        return {
            "lead": lead if self._pages else f"{counted(len(self._documents), 'document')}.",
            "notes": self.notes,
            "documents": [{"href": href, "text": d.text, "what": d.what} for href, d in self._document_pages],
            "histories": [{"href": href, "history": history} for href, history in self._histories],
            "runs": [
                {
                    "href": href,
                    "page": page,
                    "experiment_href": self._comparison_of(page),
                    "thumb": self._thumbs.get(page.name),
                }
                for href, page in self._runs
            ],
            "testbeds": len({page.testbed for page in self._pages}) > 1,
            "machines": Counter(p.machine for p in self._pages).most_common(),
        }

    def _matrix(self) -> dict[str, Any]:
        targets = sorted({p.target for p in self._pages} | {c.target for c in self._cells})
        runs: dict[str, list[tuple[str, RunPage]]] = {}
        for href, page in self._runs:
            runs.setdefault(page.experiment, []).append((href, page))
        why: dict[tuple[str, str], Cell] = {(c.experiment, c.target): c for c in self._cells}
        older = self._history_hrefs
        rows = []
        for name in sorted({*runs, *(name for name, _ in why)}):
            newest = {(page.target, page.place): (href, page) for href, page in runs.get(name, ())}
            there = list(newest.values())
            # One base for the whole row: above the baseline if all runs have that, else the metric of the spec.
            numbers = [page for _, page in there if page.own]
            base = COST if numbers and all(COST in page.ends for page in numbers) else ""
            cells = []
            for target in targets:
                measured = [
                    {
                        "href": href,
                        "page": page,
                        "ends": page.ends.get(base or page.metric),
                        "history": older.get(page.name),
                    }
                    for href, page in there
                    if page.target == target
                ]
                known = None if measured else why.get((name, target))
                state, reason = ("", "") if known is None else (known.state, known.reason)
                cells.append({"runs": measured, "state": state, "reason": reason})
            units = list(dict.fromkeys(page.ends[base or page.metric].of for page in numbers))
            variables = ", ".join(there[-1][1].variables).replace("point_index", "") if there else ""
            href = self._compared_hrefs.get(name, "")
            rows.append({"name": name, "href": href, "swept": variables, "units": units, "cells": cells})
        return {"targets": targets, "cautions": target_cautions(targets), "rows": rows, "ranks": self._ranks}


def _shown(figure: Mapping[str, Any] | None, caption: str, lower: str) -> dict[str, Any]:
    """A figure with its still drawing, its caption and its switches; ``lower`` is what its lower panel shows."""
    if not figure:
        return {"shown": None}
    switches = (
        ("logx", "Logarithmic x", figure["scale"] != "category"),
        ("logy", "Logarithmic y", True),
        ("lower", lower, figure["lower"]),
    )
    shown = {
        "figure": figure,
        "panels": drawing(figure),
        "data": script_json(figure),
        "label": figure["title"],
        "caption": caption,
        "switches": [(name, text) for name, text, there in switches if there],
    }
    return {"shown": shown}


def _run_caption(page: RunPage) -> str:
    measured = [p for p in page.points if p["n"]]
    if not measured:
        return "No point has an accepted trial."
    first, last = measured[0], measured[-1]
    text = f"{axis_text(page.metric, page.unit)}: {first['median']:.4g}"
    if len(page.points) > 1:
        text += f" at {', '.join(page.variables)} = {first['at']}, {last['median']:.4g} at {last['at']}"
    if page.model is not None:
        segments = len(page.model["segments"])
        text += f"; a model of {counted(segments, 'segment')}, {page.model['error']}"
    text += ". Dots are single repetitions, marks are medians with 95 % intervals"
    if page.figure and page.figure["breakpoints"]:
        text += "; dashed lines are breakpoints, with their intervals in grey"
    if page.figure and page.figure["marks"]:
        text += "; dotted lines are sizes at which the table fills a cache"
    return f"{text}."


def _free(stem: str, taken: set[str]) -> str:
    """A path that no other page has, also where upper and lower case are the same."""
    name, count = stem, 1
    while name.lower() in taken:
        count += 1
        name = f"{stem}-{count}"
    taken.add(name.lower())
    return f"{name}.html"

"""Models that papers print, as files of this package: what others measured, to set beside measurements of one's own.

Every file but ``papers.json`` is a :class:`~p4perf.models.component.ComponentModel`. Its provenance says that it is
published, where (paper, section, figure or equation), on which machine, which of its numbers are printed and which
follow from printed ones, what the paper does not print, and what is known to be wrong with it:

=================  ==================================================================================================
``published``      true
``paper``          key of the paper in ``papers.json``
``section`` ...    ``section``, ``figure``, ``equation``: where the numbers stand, as far as they apply
``machine``        processor, clock, card, as printed
``derived``        true if the curve follows from printed numbers, but is not itself printed
``conditions``     what was held, as JSON values
``increase_of``    name of the metric of which the curve is the increase, where only differences are printed
``printed``        the numbers of the text, by name
``segments``       the segments of the published curve, with what is printed of each; those without numbers too
``remarks``        what to know before believing it
=================  ==================================================================================================

A segment whose number of samples is not printed has 0 points. Nothing is read off a plot.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from p4perf.errors import UsageError
from p4perf.models.component import ComponentModel
from p4perf.models.templates import standard_templates

PAPERS = "papers.json"
SEPARATOR = "@"


@dataclass(frozen=True)
class Unavailable:
    """What a paper shows or says of a component, but not in numbers."""

    component: str
    target: str
    reason: str


@dataclass(frozen=True)
class PublishedPaper:
    """A paper with models; ``unavailable``: what it has no numbers of."""

    key: str
    title: str
    unavailable: tuple[Unavailable, ...]


def papers() -> tuple[PublishedPaper, ...]:
    known = json.loads((files(__name__) / PAPERS).read_text(encoding="utf-8"))
    return tuple(
        PublishedPaper(key, p["title"], tuple(Unavailable(**u) for u in p["unavailable"]))
        for key, p in sorted(known.items())
    )


def published_models() -> tuple[ComponentModel, ...]:
    texts = {f.name: f.read_text(encoding="utf-8") for f in files(__name__).iterdir() if f.name.endswith(".json")}
    templates = standard_templates()
    found = [
        ComponentModel.from_json(text, file=name, templates=templates) for name, text in texts.items() if name != PAPERS
    ]
    return tuple(sorted(found, key=lambda m: (subject_of(m), m.name, m.y.name)))


def is_published(model: ComponentModel) -> bool:
    """Whether a model is what a paper prints, not what was derived from measurements at hand."""
    return model.provenance.get("published") is True


def subject_of(model: ComponentModel) -> str:
    """The name of a published model as a subject of comparisons, such as ``t4p4s@scholz2021``."""
    return f"{model.target}{SEPARATOR}{model.provenance.get('paper')}"


def find_published(component: str, subject: str, metric: str | None = None) -> ComponentModel:
    """The published model of a component.

    Args:
        subject: target and paper, such as ``t4p4s@scholz2021``.
        metric: the metric, or one of which the curve is the increase; by default the first that is no memory.

    Raises:
        UsageError: there is none; the message says what there is, or why the paper has no numbers.
    """
    every = published_models()
    mine = [m for m in every if subject_of(m) == subject]
    if not mine:
        known = ", ".join(dict.fromkeys(subject_of(m) for m in every))
        raise UsageError(f"there is no published model {subject}", hint=f"known: {known}")
    of_component = [m for m in mine if m.name == component]
    chosen = [m for m in of_component if metric is None or metric in (m.y.name, m.provenance.get("increase_of"))]
    if chosen:
        return min(chosen, key=lambda m: m.y.name == "memory_bytes")
    if of_component:
        known = ", ".join(m.y.name for m in of_component)
        raise UsageError(f"{subject} has no {metric} of {component}", hint=f"published: {known}")
    known = ", ".join(dict.fromkeys(m.name for m in mine))
    raise UsageError(_why_none(component, subject), hint=f"published of {subject}: {known}")


def _why_none(component: str, subject: str) -> str:
    target, _, key = subject.partition(SEPARATOR)
    for paper in papers():
        for missing in paper.unavailable:
            if (paper.key, missing.component, missing.target) == (key, component, target):
                return f"{subject} has no curve of {component}: {missing.reason}"
    return f"{subject} has no curve of {component}"

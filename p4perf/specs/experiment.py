"""An experiment, put together: the validated spec, its points, and its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from typing_extensions import override

from p4perf.errors import DataError, Location, SpecError
from p4perf.formats.pcap import Capture, read_capture
from p4perf.formats.plain import real
from p4perf.specs.loader import load_tree, set_value
from p4perf.specs.messages import explain, key_path, nearest, placed
from p4perf.specs.points import ParametersOf, Point, make_points
from p4perf.specs.schema import ExperimentSpec
from p4perf.specs.source import MAX_EXPONENT_INTEGER, SourceNode, needs_quotes
from p4perf.specs.sweep import thinned, variable_names

COSMETIC = ("title", "description", "source", "extends")
"""Parts of a spec that influence nothing, and are not in its hash."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A validated spec and the points of its sweep.

    ``source`` is where it was loaded from; ``spec_hash`` is the SHA-256 of what the spec means (64 hexadecimal digits).
    """

    spec: ExperimentSpec
    points: tuple[Point, ...]
    source: str
    spec_hash: str
    capture: Capture | None = None
    """The capture that is replayed, if one is."""
    root: SourceNode | None = field(default=None, repr=False, compare=False)
    """The tree that the spec was made of, for places in errors."""

    def locate(self, key: str | None) -> Location | None:
        """The place of a key of the spec; of a spec with combined variants, which may set it, only the file."""
        if self.root is None:
            return None
        combined = self.spec.sweep.combined
        if key is None or combined.subsets_of or combined.each_of:
            return Location(self.root.place.file)
        return self.root.locate(key_path(key))

    def resolved_yaml(self) -> str:
        """The spec with everything inherited, overridden and defaulted; it loads back to the same experiment."""
        head = f"# {self.spec.name}, as resolved; sha256 {self.spec_hash}\n"
        return head + spec_yaml(_dump(self.spec))


def spec_yaml(content: Mapping[str, Any]) -> str:
    """The content of a spec as YAML that reads back as the same values."""
    plain = dict(content)
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)


def load_experiment(
    source: str,
    *,
    overrides: Sequence[tuple[str, str]] = (),
    points: int | None = None,
    parameters_of: ParametersOf | None = None,
) -> Experiment:
    """Load, resolve and validate a spec, and expand its sweep.

    Args:
        source: name of the catalogue (``mat/exact-entries``), or path of a YAML file.
        overrides: ``(key, value)`` of every ``--set key=value``, applied in order: a dotted path, or the bare name of a
            swept variable or parameter; the value is YAML.
        points: most values of every swept variable, evenly chosen; the first and last stay.
        parameters_of: the parameters that each component takes
            (:func:`~p4perf.programs.component.component_parameters`); without it, as for the spec of a run whose
            component may no longer be installed, they are not checked.

    Raises:
        SpecError: whatever is wrong with the spec or the overrides, with its place.
    """
    root = load_tree(str(source))
    for key, value in overrides:
        root = set_value(root, key, value)
    try:
        spec = ExperimentSpec.model_validate(root.plain())
    except ValidationError as error:
        raise explain(error, root) from error
    with placed(root):
        if points is not None:
            spec = spec.model_copy(update={"sweep": thinned(spec.sweep, points)})
        spec = _with_x(spec)
        spec, capture = _with_capture(spec, Path(source))
        return Experiment(spec, make_points(spec, root, parameters_of), str(source), spec_hash(spec), capture, root)


def spec_hash(spec: ExperimentSpec) -> str:
    """SHA-256 of the canonical JSON of a spec, without what is cosmetic; the order of variables counts."""
    content = {key: value for key, value in _dump(spec).items() if key not in COSMETIC}
    if content.get("model"):
        # Under their former names, so that the hash of a spec stays what it was.
        former = {"segments": "parts", "max_segments": "max_parts"}
        content["model"] = {former.get(key, key): value for key, value in content["model"].items()}
    if not content["sweep"].get("skip_impossible"):
        content["sweep"].pop("skip_impossible", None)  # so that the hash of a spec stays what it was
    order = [*variable_names(spec.sweep), *spec.sweep.assigned]
    combined = spec.sweep.combined
    if combined.subsets_of or combined.each_of:
        used = _with_ancestors(spec, (*combined.subsets_of, *combined.each_of))
        content["variants"] = {
            name: {key: value for key, value in variant.items() if key not in COSMETIC}
            for name, variant in content["variants"].items()
            if name in used
        }
        content["sweep"]["multiplex"] = [combined.subsets_of, combined.subset_sizes, combined.each_of]
    else:
        content.pop("variants", None)
    text = json.dumps([content, order], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _with_ancestors(spec: ExperimentSpec, names: Sequence[str]) -> set[str]:
    found: set[str] = set()
    open_ = list(names)
    while open_:
        name = open_.pop()
        if name not in found:
            found.add(name)
            open_ += spec.variants[name].inherits
    return found


def _with_capture(spec: ExperimentSpec, source: Path) -> tuple[ExperimentSpec, Capture | None]:
    replay = spec.traffic.replay
    if replay is None:
        return spec, None
    folder = real(source).parent
    path = real(folder / replay.pcap)
    if not source.is_file() or not path.is_relative_to(folder):
        raise SpecError(f"{replay.pcap} is outside of the folder of this spec", key="traffic.replay.pcap")
    try:
        capture = read_capture(path)
    except DataError as error:
        raise SpecError(f"{replay.pcap} {error.message}", key="traffic.replay.pcap", hint=error.hint) from error
    if replay.sha256 not in (None, capture.sha256):
        raise SpecError(f"{replay.pcap} is another capture than this", key="traffic.replay.sha256")
    if replay.timing == "recorded" and capture.rate_pps is None:
        raise SpecError(f"all frames of {replay.pcap} came at once", key="traffic.replay.timing", hint="write offered")
    known = replay.model_copy(update={"sha256": capture.sha256})
    return spec.model_copy(update={"traffic": spec.traffic.model_copy(update={"replay": known})}), capture


def _with_x(spec: ExperimentSpec) -> ExperimentSpec:
    """The spec with the variable that the model is over, which need not be named if there is only one."""
    names = variable_names(spec.sweep)
    if spec.model is None:
        return spec
    if spec.model.x is None:
        if len(names) > 1:
            raise SpecError("say which swept variable is x", key="model", hint=f"swept variables: {', '.join(names)}")
        return spec.model_copy(update={"model": spec.model.model_copy(update={"x": names[0]})}) if names else spec
    if spec.model.x not in names:
        hint = nearest(spec.model.x, names, "swept variables")
        raise SpecError(f"{spec.model.x} is not a swept variable", key="model.x", hint=hint)
    return spec


def _dump(spec: ExperimentSpec) -> dict[str, Any]:
    content = spec.model_dump(mode="json", exclude_none=True, exclude={"extends"})
    if not content["device"]:
        del content["device"]
    if not spec.asks_load:
        del content["load"]
    if content["variants"]:
        content["variants"] = {
            name: {key: value for key, value in variant.items() if value not in ("", [], {})}
            for name, variant in content["variants"].items()
        }
    else:
        del content["variants"]
    content["sweep"] = {name: value for name, value in content["sweep"].items() if value not in ([], {})}
    return content


class _Dumper(yaml.SafeDumper):
    """Writes what :mod:`p4perf.specs.source` reads back as the same value: no aliases, quotes where words need them."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if needs_quotes(text) else None)


def _represent_float(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    # A whole number with an exponent would be read as an integer.
    whole = value.is_integer() and abs(value) <= MAX_EXPONENT_INTEGER
    text = f"{value:.1f}" if whole else repr(value)
    return dumper.represent_scalar("tag:yaml.org,2002:float", text if "." in text else text.replace("e", ".0e", 1))


_Dumper.add_representer(str, _represent_str)
_Dumper.add_representer(float, _represent_float)

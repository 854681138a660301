"""Files of machines and functions: those of the catalogue by name, others by path; read as strictly as specs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from p4perf.errors import P4PerfError, SpecError, UsageError
from p4perf.models import eo
from p4perf.models.eo.operations import FRAME, find_operation
from p4perf.specs.loader import yaml_files
from p4perf.specs.messages import nearest, validation_error
from p4perf.specs.source import MAX_BYTES, parse_bytes
from p4perf.specs.types import Strict, parse_strictly, read_strictly
from p4perf.specs.units import Dimension, parse_quantity

NAME = r"^[a-z0-9]+(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)*$"
WORD = r"^[A-Za-z_][A-Za-z0-9_]{0,40}$"
NETWORK_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,60}$"


@contextmanager
def _validated(**place: Any) -> Iterator[None]:
    """Errors of p4perf as errors of validation."""
    try:
        yield
    except P4PerfError as error:
        raise validation_error(error.message, hint=error.hint, **place) from error


def _quantity(dimension: Dimension) -> BeforeValidator:
    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        with _validated():
            found = parse_quantity(value, dimension)
        return int(found) if found.denominator == 1 else float(found)

    return BeforeValidator(read)


def _formula(value: object) -> eo.Expression:
    if isinstance(value, eo.Expression):
        return value
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise validation_error("expected a formula such as 5 * ceil(b / 8)")
    with _validated():
        return eo.parse_expression(value)


Formula = Annotated[eo.Expression, BeforeValidator(_formula)]
Size = Annotated[int, _quantity("data size"), Field(gt=0, le=1 << 60)]
Clock = Annotated[float, _quantity("frequency"), Field(gt=0, le=1e12)]
Rate = Annotated[float, _quantity("data rate"), Field(gt=0, le=1e15)]
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Words = Annotated[str, Field(max_length=2000)]
Level = Literal["L1", "L2", "L3", "DRAM"]


class _Part(Strict):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class ValueSpec(_Part):
    """A number with an interval; a number alone has none."""

    value: Finite
    low: Finite | None = None
    high: Finite | None = None
    unit: str = Field("cycles", max_length=40)
    what: Words = ""

    @model_validator(mode="after")
    def _ordered(self) -> ValueSpec:
        low, high = self.low if self.low is not None else self.value, self.high if self.high is not None else self.value
        if not low <= self.value <= high:
            raise validation_error(f"the interval from {low:g} to {high:g} does not hold the value {self.value:g}")
        return self

    def make(self) -> eo.HardwareValue:
        low, high = (None if v is None else _exact(v) for v in (self.low, self.high))
        return eo.HardwareValue(_exact(self.value), low, high, self.unit, self.what)


def _short(value: object) -> object:
    return {"value": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


Number = Annotated[ValueSpec, BeforeValidator(_short)]


def _exact(value: float) -> Fraction:
    return Fraction(str(value))


def _made(spec: ValueSpec | None) -> eo.HardwareValue | None:
    return None if spec is None else spec.make()


class CacheSpec(_Part):
    size: Size = Field(description="What one core sees of it; of a shared one, its whole size.")
    latency_cycles: Number | None = Field(None, description="Of a load that hits it.")
    holds_tables: bool = Field(True, description="Whether tables may lie in it.")
    shared: bool = Field(False, description="By all cores of a socket.")


class MemorySpec(_Part):
    size: Size = Field(description="Of all sockets together.")
    latency_cycles: Number | None = Field(None, description="Of a load that misses all caches.")
    data_rate_mts: float | None = Field(None, gt=0, le=1e6, description="Million transfers a second of a channel.")
    cas_cycles: float | None = Field(None, gt=0, le=1000, description="CAS latency.")
    channels: int = Field(1, ge=1, le=64, description="Channels of a socket.")
    bus_bytes: int = Field(8, ge=1, le=1024, description="Bytes of a transfer.")
    access_bytes: int = Field(64, ge=1, le=65536, description="Bytes that an access moves.")
    outstanding: float = Field(1, gt=0, le=1e6, description="Accesses that a core has in flight.")
    accesses_per_s: float | None = Field(None, gt=0, le=1e15, description="Accesses a second of one core, measured.")


class LinksSpec(_Part):
    ports: int = Field(ge=1, le=1000)
    rate: Rate


class RuleSpec(_Part):
    cycles: Formula
    cycles_cached: Formula | None = None
    accesses: Formula | None = None
    table: Formula | None = None
    stalls: dict[Level, Formula] = Field(default_factory=dict)
    remote_cycles: Formula | None = None
    remote_accesses: Formula | None = None

    def make(self) -> eo.CostRule:
        return eo.CostRule(table_bytes=self.table, **{key: value for key, value in self if key != "table"})

    def formulas(self) -> dict[tuple[str, ...], eo.Expression]:
        keys = ("cycles", "cycles_cached", "accesses", "table", "remote_cycles", "remote_accesses")
        found: dict[tuple[str, ...], eo.Expression] = {(k,): f for k in keys if (f := getattr(self, k)) is not None}
        return found | {("stalls", level): formula for level, formula in self.stalls.items()}


Rules = dict[str, RuleSpec]
Constants = dict[Annotated[str, Field(pattern=WORD)], Number]


class ProfileSpec(_Part):
    title: Words = ""
    latencies: dict[Level, Number] = Field(default_factory=dict)
    constants: Constants = Field(default_factory=dict)
    operations: Rules = Field(default_factory=dict)

    def make(self, name: str) -> eo.Profile:
        latencies: dict[str, eo.HardwareValue] = {level: value.make() for level, value in self.latencies.items()}
        constants = {constant: value.make() for constant, value in self.constants.items()}
        rules = {operation: rule.make() for operation, rule in self.operations.items()}
        return eo.Profile(name, self.title, latencies, constants, rules)


class HardwareFile(_Part):
    eo_version: Literal[1]
    name: str = Field(pattern=NETWORK_NAME)
    title: Words = ""
    source: Words = ""
    clock: Clock = Field(description="Core clock.")
    sockets: int = Field(1, ge=1, le=1024)
    cores: int = Field(1, ge=1, le=4096, description="Cores of a socket.")
    exclusive: bool = Field(False, description="Sizes of caches add up.")
    tables: Literal["whole", "share"] = Field("whole", description="How tables lie in caches.")
    caches: dict[Literal["L1", "L2", "L3"], CacheSpec] = Field(default_factory=dict)
    memory: MemorySpec
    links: LinksSpec | None = None
    constants: Constants = Field(default_factory=dict)
    operations: Rules = Field(min_length=1)
    profiles: dict[Annotated[str, Field(pattern=NETWORK_NAME)], ProfileSpec] = Field(default_factory=dict)
    remarks: tuple[Words, ...] = ()

    @model_validator(mode="after")
    def _names_are_known(self) -> HardwareFile:
        known = eo.registered_operations()
        _check_constants(self.constants, ())
        _check_rules(self.operations, set(self.constants), known, ("operations",))
        for name, profile in self.profiles.items():
            _check_constants(profile.constants, ("profiles", name))
            constants = {*self.constants, *profile.constants}
            _check_rules(profile.operations, constants, known, ("profiles", name, "operations"))
        return self

    def make(self) -> eo.Hardware:
        m, same = self.memory, {"name", "title", "source", "sockets", "cores", "exclusive", "remarks"}
        return eo.Hardware(
            clock_hz=self.clock,
            caches=tuple(
                eo.Cache(level, cache.size, _made(cache.latency_cycles), cache.holds_tables, cache.shared)
                for level, cache in sorted(self.caches.items(), key=lambda item: item[0])
            ),
            memory=eo.Memory(m.size, _made(m.latency_cycles), **m.model_dump(exclude={"size", "latency_cycles"})),
            rules={name: rule.make() for name, rule in self.operations.items()},
            links=None if self.links is None else eo.Links(self.links.ports, self.links.rate),
            constants={name: value.make() for name, value in self.constants.items()},
            fit=self.tables,
            profiles=tuple(profile.make(name) for name, profile in self.profiles.items()),
            **self.model_dump(include=same),
        )


def _check_constants(constants: Mapping[str, Any], path: tuple[str, ...]) -> None:
    for name in constants:
        if name in eo.LEVELS:
            message = f"{name} is the latency of a level, not a constant"
            hint = "give latency_cycles" if name != eo.DRAM else "give latency_cycles of memory"
            raise validation_error(message, hint=hint, path=(*path, "constants", name), key=True)


def _check_rules(rules: Rules, constants: set[str], known: Mapping[str, Any], path: tuple[str, ...]) -> None:
    for name, rule in rules.items():
        with _validated(path=(*path, name), key=True):
            operation = find_operation(name, known)
        names = {p.name for p in operation.parameters} | constants | set(eo.LEVELS)
        for key, formula in rule.formulas().items():
            for strange in sorted(formula.names - names):
                message = f"{strange} is neither a parameter of {operation.signature} nor a constant"
                raise validation_error(message, hint=nearest(strange, names), path=(*path, name, *key))


class SymbolSpec(_Part):
    value: Formula
    what: Words = ""


class CallSpec(_Part):
    """An operation with further properties besides its arguments."""

    do: str = Field(max_length=400)
    table: str = Field("", max_length=100)
    times: float = Field(1, gt=0, le=1e6)
    what: Words = ""

    @field_validator("do")
    @classmethod
    def _is_a_call(cls, text: str) -> str:
        with _validated():
            eo.parse_call(text)
        return text

    def make(self) -> eo.Call:
        call = eo.parse_call(self.do)
        return eo.Call(call.operation, call.arguments, _exact(self.times), self.table, self.what)


class PrintedSpec(_Part):
    cycles: float | None = None
    dram_accesses: float | None = None
    mpps: float | None = None
    gbps: float | None = None
    source: Words = ""


class FunctionFile(_Part):
    eo_version: Literal[1]
    name: str = Field(pattern=NAME)
    title: Words = ""
    source: Words = ""
    frame_size: Annotated[int, _quantity("data size"), Field(ge=64, le=9216)] = 64
    symbols: dict[
        Annotated[str, Field(pattern=WORD)],
        Annotated[SymbolSpec, BeforeValidator(lambda value: value if isinstance(value, dict) else {"value": value})],
    ] = Field(default_factory=dict)
    operations: tuple[
        Annotated[CallSpec, BeforeValidator(lambda value: {"do": value} if isinstance(value, str) else value)], ...
    ] = Field(min_length=1, max_length=10_000)
    printed: PrintedSpec | None = None
    remarks: tuple[Words, ...] = ()

    @model_validator(mode="after")
    def _symbols_are_known(self) -> FunctionFile:
        known = {FRAME}
        if FRAME in self.symbols:
            raise validation_error(f"{FRAME} is the frame size and no other symbol", path=("symbols", FRAME), key=True)
        for name, symbol in self.symbols.items():
            _check_symbols(symbol.value, known, ("symbols", name))
            known.add(name)
        for number, call in enumerate(self.operations):
            for argument in eo.parse_call(call.do).arguments:
                _check_symbols(argument, known, ("operations", number))
        return self

    def make(self) -> eo.NetworkFunction:
        p = self.printed
        return eo.NetworkFunction(
            name=self.name,
            calls=tuple(call.make() for call in self.operations),
            title=self.title,
            symbols=tuple(eo.Symbol(name, s.value, s.what) for name, s in self.symbols.items()),
            frame_bytes=self.frame_size,
            source=self.source,
            remarks=tuple(" ".join(r.split()) for r in self.remarks),
            printed=None if p is None else eo.Printed(**dict(p)),
        )


def _check_symbols(formula: eo.Expression, known: set[str], path: tuple[str | int, ...]) -> None:
    for strange in sorted(formula.names - known):
        raise validation_error(f"there is no symbol {strange!r}", hint=nearest(strange, known, "symbols"), path=path)


SUFFIXES = (".yaml", ".yml")
_CATALOGUE = files("p4perf.evaluation.papers.baldi2018").joinpath("catalogue")


def hardware_names() -> tuple[str, ...]:
    return tuple(sorted(name for name, _ in yaml_files(_CATALOGUE.joinpath("hardware"))))


def function_names() -> tuple[str, ...]:
    return tuple(sorted(name for name, _ in yaml_files(_CATALOGUE.joinpath("functions"))))


def load_hardware(name: str, profile: str | None = None) -> eo.Hardware:
    """A machine by its name in the catalogue, or by the path of its file, as a profile reads it.

    Raises:
        UsageError: there is no such machine or profile.
        DataError: the file is wrong; with its place.
    """
    found = _load(name, "hardware", HardwareFile, "hardware", " or name a .yaml file (p4perf learn --operations)")
    return found.make().with_profile(profile)


def load_function(name: str) -> eo.NetworkFunction:
    """A function by its name in the catalogue, or by the path of its file.

    Raises:
        UsageError: there is no such function.
        DataError: the file is wrong; with its place.
    """
    return _load(name, "functions", FunctionFile, "function").make()


File = TypeVar("File", HardwareFile, FunctionFile)


def _load(name: str, folder: str, kind: type[File], noun: str, besides: str = "") -> File:
    shipped = dict(yaml_files(_CATALOGUE.joinpath(folder)))
    if name in shipped:
        return parse_strictly(shipped[name].read_bytes(), str(shipped[name]), kind)[0]
    if not name.endswith(SUFFIXES):
        hint = nearest(name, shipped, "the catalogue has") + besides
        raise UsageError(f"there is no {noun} {name!r}", hint=hint)
    return read_strictly(Path(name), kind, noun)[0]


def parse_hardware(data: bytes, file: str) -> eo.Hardware:
    """The machine that a text describes; ``file`` is its name, for messages."""
    return parse_strictly(data, file, HardwareFile)[0].make()


def is_function_file(path: Path) -> bool:
    """Whether a file describes a function: it has ``operations``, which a spec has not."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as opened:
            return parse_bytes(opened.read(MAX_BYTES + 1), str(path)).child("operations") is not None
    except (OSError, ValueError, SpecError):
        return False

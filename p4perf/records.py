"""Records that describe themselves: every key of a document with its type, unit and meaning.

A record is a class with one annotated :func:`doc` for each key of a JSON object, in the order of printing. The values
come as keyword arguments, or by name from another object (:meth:`Record.read`). The JSON value, the rows of tables, the
JSON Schema (:func:`json_schema`) and the documentation are made from the same declaration.
"""

from __future__ import annotations

import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from typing_extensions import dataclass_transform, override

if TYPE_CHECKING:
    import pandas as pd

DOCUMENT_VERSION = 2
"""``schema_version`` of the documents that commands print; it rises when a key changes its meaning or goes."""

Scalar = bool | int | float | str

LONGEST, LONG = 120, 32
"""Characters of the repr of a result, and of a text in it."""


class _Absent:
    """Value of an optional key that is not there."""

    def __bool__(self) -> bool:
        return False


ABSENT: Any = _Absent()


@dataclass(frozen=True, slots=True)
class KeyDeclaration:
    """Declaration of a key.

    Args:
        meaning: what it is, for people, in Markdown.
        path: where :meth:`Record.read` finds it: attributes, keys and calls without arguments, such as
            ``model.x.label()``; by default its own name. Nothing beyond a None is None.
        optional: the key may be absent.
        flat: of an :class:`Interval`: it becomes three keys, ``name``, ``name_low`` and ``name_high``.
        stands_for: of a mapping whose keys stand beside the others: what they are, such as ``variable``.
    """

    meaning: str
    unit: str = ""
    path: str = ""
    optional: bool = False
    flat: bool = False
    stands_for: str = ""


def doc(meaning: str, unit: str = "", *, of: str = "", optional: bool = False) -> Any:
    """A key of a record. See :class:`KeyDeclaration`."""
    return KeyDeclaration(meaning, unit, of, optional)


def interval(meaning: str, unit: str = "", *, of: str = "") -> Any:
    """Three keys of a record: a value and the ends of its interval."""
    return KeyDeclaration(meaning, unit, of, flat=True)


def spread(stands_for: str, meaning: str, *, of: str = "") -> Any:
    """A mapping whose keys, which are not fixed, stand beside those of the record."""
    return KeyDeclaration(meaning, "", of, stands_for=stands_for)


@dataclass_transform(
    eq_default=False, kw_only_default=True, frozen_default=True, field_specifiers=(doc, interval, spread)
)
class Record:
    """A JSON object with described keys. Subclasses declare them; instances are immutable."""

    KEYS: ClassVar[Mapping[str, KeyDeclaration]] = {}
    """The declared keys, those of bases first."""

    @override
    def __init_subclass__(cls) -> None:
        cls.KEYS = {
            n: k for base in reversed(cls.__mro__) for n, k in vars(base).items() if isinstance(k, KeyDeclaration)
        }

    def __init__(self, **values: Any) -> None:
        keys = self.KEYS
        if wrong := values.keys() - keys.keys() or {n for n, k in keys.items() if not k.optional} - values.keys():
            raise TypeError(f"{type(self).__name__}: unknown or missing {', '.join(sorted(wrong))}")
        self.__dict__.update(values)

    @override
    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    @classmethod
    def read(cls, source: Any, **given: Any) -> Self:
        """Read a record from an object or a mapping.

        Args:
            source: has the values under the names of the keys, or where their declarations say.
            given: values that the source does not have.

        Raises:
            AttributeError: the source does not have a value.
            TypeError: a given value has no key.
        """
        if unknown := given.keys() - cls.KEYS.keys():
            raise TypeError(f"{cls.__name__}: unknown {', '.join(sorted(unknown))}")
        hints = _hints(cls)
        values = {
            name: given[name] if name in given else _read(source, declared.path or name, optional=declared.optional)
            for name, declared in cls.KEYS.items()
        }
        return cls(**{name: _converted(value, hints[name]) for name, value in values.items() if value is not ABSENT})

    def as_dict(self) -> dict[str, Any]:
        """The JSON value: keys in the order of their declarations, null for what is not finite."""
        found: dict[str, Any] = {}
        for name, declared in self.KEYS.items():
            value = self.__dict__.get(name, ABSENT)
            if declared.flat:
                ends = (None, None, None) if value is None else (value.value, value.low, value.high)
                found |= dict(zip(_ends(name), map(json_value, ends), strict=True))
            elif declared.stands_for:
                found |= json_value(value or {})
            elif value is not ABSENT:
                found[name] = json_value(value)
        return found


class Tabular(ABC):
    """Data with rows: a table in a notebook, and in pandas."""

    @abstractmethod
    def rows_of_table(self) -> Sequence[Mapping[str, Any]]:
        """The rows, by the names of their columns."""

    @override
    def __repr__(self) -> str:
        return short(f"<{type(self).__name__}: {_summary(self.rows_of_table())}>")

    def to_frame(self) -> pd.DataFrame:
        """The rows as a table."""
        import pandas as pd

        return pd.DataFrame(self.rows_of_table())

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False)


class Interval(Record):
    """A value with its interval."""

    value: float | None = doc("value")
    low: float | None = doc("lower end of its interval")
    high: float | None = doc("upper end")


class Document(Tabular, Record):
    """What a command prints with ``--format json``, of a ``kind``. The docstring of a subclass stands on its page."""

    KIND: ClassVar[str]
    KINDS: ClassVar[dict[str, type[Document]]] = {}
    """All documents whose modules are imported, by kind."""

    @override
    def __init_subclass__(cls, kind: str) -> None:
        super().__init_subclass__()
        cls.KIND = kind
        Document.KINDS[kind] = cls

    @override
    def as_dict(self) -> dict[str, Any]:
        return {"schema_version": DOCUMENT_VERSION, "kind": self.KIND, **super().as_dict()}

    @override
    def rows_of_table(self) -> Sequence[Mapping[str, Any]]:
        rows: Sequence[Mapping[str, Any]] = self.as_dict().get("rows", ())
        return rows

    @override
    def __repr__(self) -> str:
        own = _values(super().as_dict())
        return short(f"<{type(self).__name__}: {'; '.join(filter(None, (own, _summary(self.rows_of_table()))))}>")


def listing(kind: str, row: type[Record], text: str) -> type[Document]:
    """A document that is nothing but rows of one type; ``text`` is its docstring."""
    name = "".join(word.title() for word in kind.split(".")) + "Document"
    keys = {"rows": doc(""), "__annotations__": {"rows": tuple[row, ...]}}  # type: ignore[valid-type]
    return type(name, (Document,), {"__doc__": text, "__module__": row.__module__, **keys}, kind=kind)


_HINTS: dict[type[Record], Mapping[str, Any]] = {}


def _hints(cls: type[Record]) -> Mapping[str, Any]:
    if cls not in _HINTS:
        _HINTS[cls] = get_type_hints(cls)
    return _HINTS[cls]


def _ends(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _read(source: Any, path: str, *, optional: bool) -> Any:
    for name in path.split("."):
        if source is None:
            return None
        if isinstance(source, Mapping):
            if name not in source and optional:
                return ABSENT
            source = source[name]
        else:
            attribute = name.removesuffix("()")
            if optional and not hasattr(source, attribute):
                return ABSENT
            source = getattr(source, attribute)
            source = source() if name.endswith("()") else source
    return source


def _converted(value: Any, hint: Any) -> Any:
    kind, _ = _without_none(hint)
    if value is None or isinstance(value, Record):
        return value
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.read(value)
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return tuple(_converted(each, item) for each in value)
    if get_origin(kind) is dict:
        return dict(value)
    return str(value) if kind is str else value


def json_value(value: Any) -> Any:
    """A value that JSON can hold: records and mappings as objects, sequences as lists, what is not finite as null."""
    if isinstance(value, Record):
        return value.as_dict()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    return str(value) if isinstance(value, PurePath) else value


def mismatch(hint: Any, value: Any, place: str = "") -> str:
    """The first place where a value that was read from JSON is not as it is declared; empty if there is none.

    Keys that are missing, or not declared, are passed over: another version of p4perf may have written it.

    Args:
        hint: a record, or the annotation of a key.
        place: of the value, for the message.
    """
    kind, nullable = _without_none(hint)
    if kind is Any or (value is None and (nullable or kind is float)):  # a number that is not finite is null
        return ""
    items: Iterator[tuple[str, Any, Any]] = iter(())
    fits = isinstance(value, {tuple: list, dict: dict}.get(get_origin(kind), dict))
    if isinstance(kind, type) and issubclass(kind, Record):
        items = _members(kind, value) if fits else items
    elif get_origin(kind) is tuple:
        items = ((f"[{n}]", get_args(kind)[0], each) for n, each in enumerate(value if fits else ()))
    elif get_origin(kind) is dict:
        items = ((f".{name}", get_args(kind)[1], each) for name, each in (value if fits else {}).items())
    else:
        fits = any(_is_scalar(each, value) for each in get_args(kind) or (kind,))
    if not fits:
        known = _schema(hint)["type"]
        return f"{place.lstrip('.') or 'it'} is not {known if isinstance(known, str) else ' or '.join(known)}"
    return next((found for name, own, each in items if (found := mismatch(own, each, f"{place}{name}"))), "")


def _members(record: type[Record], value: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, annotation and value of the keys of a record that are there."""
    for name, declared in record.KEYS.items():
        for each, _, kind in () if declared.stands_for else _described(name, declared, _hints(record)[name]):
            if each in value:
                yield f".{each}", kind, value[each]


def _is_scalar(kind: type, value: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


# --- descriptions

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def _without_none(hint: Any) -> tuple[Any, bool]:
    """The annotation of a value that is there, and whether it may be None."""
    if get_origin(hint) not in (Union, UnionType) or NoneType not in get_args(hint):
        return hint, False
    others = [each for each in get_args(hint) if each is not NoneType]
    return Union[tuple(others)], True  # noqa: UP007 - of a sequence


def json_schema(document: type[Record]) -> dict[str, Any]:
    """The JSON Schema of a record or document (draft 2020-12)."""
    schema = _object(document)
    if issubclass(document, Document):
        head = {"schema_version": {"const": DOCUMENT_VERSION}, "kind": {"const": document.KIND}}
        schema |= {"title": document.KIND, "properties": head | schema["properties"]}
        schema["required"] = [*head, *schema["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _object(record: type[Record]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    schema = {"type": "object", "description": text_of(record), "properties": properties, "required": required}
    for name, declared in record.KEYS.items():
        hint = _hints(record)[name]
        if declared.stands_for:
            schema["additionalProperties"] = {"description": declared.meaning, **_schema(get_args(hint)[1])}
            continue
        for each, meaning, kind in _described(name, declared, hint):
            unit = {"unit": declared.unit} if declared.unit else {}
            properties[each] = {"description": meaning, **unit, **_schema(kind)}
            if not declared.optional:
                required.append(each)
    return schema


def _described(name: str, declared: KeyDeclaration, hint: Any) -> Iterator[tuple[str, str, Any]]:
    """Name, meaning and annotation of the keys of a declaration: three of a flat interval, else one."""
    if not declared.flat:
        yield name, declared.meaning, hint
        return
    kind = float | None if _without_none(hint)[1] else float
    meanings = (declared.meaning, "lower end of its interval", "upper end")
    yield from zip(_ends(name), meanings, (kind, float | None, float | None), strict=True)


def _schema(hint: Any) -> dict[str, Any]:
    kind, nullable = _without_none(hint)
    if nullable:
        schema = _schema(kind)
        known = schema.get("type")
        if known is None:
            return {"anyOf": [schema, {"type": "null"}]} if schema else schema
        return schema | {"type": [*([known] if isinstance(known, str) else known), "null"]}
    if kind is Any:
        return {}
    if get_origin(kind) in (Union, UnionType):
        return {"type": [_TYPES[each] for each in get_args(kind)]}
    if isinstance(kind, type) and issubclass(kind, Record):
        return {name: value for name, value in _object(kind).items() if name != "description"}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _schema(get_args(kind)[0])}
    return {"type": "object"} if get_origin(kind) is dict else {"type": _TYPES[kind]}


def duration_text(seconds: float) -> str:
    """A time for people: ``40 s``, ``2 min 05 s``, ``1 h 20 min``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def counted(count: int, noun: str) -> str:
    """Such as ``1 point`` and ``3 entry files``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def short(text: str) -> str:
    """A text of at most :data:`LONGEST` characters as the repr of a result, its end replaced by dots."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 5]} ...>"


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """What rows hold: the values of a single one, else their number and the values of their first column."""
    if len(rows) == 1:
        return _values(rows[0])
    name = next(iter(rows[0])) if rows else ""
    names = ", ".join(dict.fromkeys(f"{row.get(name)}" for row in rows))
    return f"{len(rows)} rows{f', {name} {names}' if rows else ''}"


def _values(row: Mapping[str, Any]) -> str:
    """The numbers and texts of a row with their names."""
    values = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}
    texts = {name: f"{value}" for name, value in values.items() if isinstance(value, int | str)}
    return ", ".join(f"{name} {t if len(t) <= LONG else f'...{t[3 - LONG :]}'}" for name, t in texts.items())


def text_of(record: type[Record]) -> str:
    return inspect.cleandoc(record.__doc__ or "")


def as_rows(rows: Sequence[Record]) -> list[dict[str, Any]]:
    return [row.as_dict() for row in rows]

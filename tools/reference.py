"""Write the reference pages: every command with its options, every key of a spec and of JSON, from the code itself.

Usage: python tools/reference.py [FOLDER]; by default the folder is docs.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import typer
from jinja2 import Environment, StrictUndefined
from typer.main import get_command

from p4perf import records
from p4perf.cli import loaded
from p4perf.cli.app import COMMANDS as COMMANDS_BY_HEADING
from p4perf.cli.inspect import documents
from p4perf.records import DOCUMENT_VERSION, Interval, Record, Scalar, text_of
from p4perf.specs.schema import ExperimentSpec

MARK = "<!-- From here to the next mark written by tools/reference.py from the code; a test compares them. -->"
END = "<!-- The end of what is written by tools/reference.py. -->"

COMMANDS = """\
{{ mark }}

## Common options

They mean the same in every command that has them.

| option | default | meaning |
|---|---|---|
{% for row in common %}
| {{ row.option }} | {{ row.default }} | {{ row.help }} |
{% endfor %}
{% for group in groups %}

## {{ group.title }}
{% for command in group.commands %}

### {{ command.name }}

{{ command.help }}

| argument, option | default | meaning |
|---|---|---|
{% for row in command.rows %}
| {{ row.option }} | {{ row.default }} | {{ row.help }} |
{% endfor %}
{% endfor %}
{% endfor %}

{{ end }}
"""

SPECS = """\
{{ mark }}

| key | value | default | meaning |
|---|---|---|---|
{% for row in rows %}
| `{{ row.name }}`{{ " (required)" if row.required }} | {{ row.value }} | {{ row.default }} | {{ row.help }} |
{% endfor %}

{{ end }}
"""

DOCUMENTS = """\
{{ mark }}

## Every command

- `schema_version` (integer) version of this page: {{ version }}
- `kind` the kind of object, one of the titles below

## Lists

These documents contain only `rows[]`.

{% for document in lists %}
{{ document.text }}
{% endfor %}

## Estimates and analyses

`p4perf check --schema KIND` prints the keys of these.

{% for document in papers %}
{{ document.text }}
{% endfor %}
{% for document in documents %}

## {{ document.kind }}

{{ document.text }}

{{ document.body }}
{% endfor %}

{{ end }}
"""


def _page(template: str, **context: object) -> str:
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701
    return environment.from_string(template).render(mark=MARK, end=END, **context)


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name in sorted(group.commands):
        command = group.commands[name]
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _value(parameter: Any, context: Any) -> str:
    """What stands for the value of a parameter in its help."""
    text = str(parameter.metavar or parameter.display_type(context)).strip("<>")
    found = re.fullmatch(r"list\[(.*)\]", text)
    return f"{found[1]}..." if found else text.removesuffix(" range")


def _argument(parameter: Any) -> Mapping[str, str]:
    """An argument as it is typed: in brackets if it may be left out, with dots if there may be several."""
    name = parameter.metavar or parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
    return {
        "option": f"`{name if parameter.required or name.startswith('[') else f'[{name}]'}`",
        "default": "",
        "help": _cell(getattr(parameter, "help", "") or ""),
    }


def _option(parameter: Any, context: Any) -> Mapping[str, str]:
    flag = getattr(parameter, "is_flag", False)
    default = parameter.default
    if default is None and isinstance(parameter.show_default, str):
        default = parameter.show_default
    elif default is None or default is False or callable(default) or default == ():
        default = ""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = "" if flag else _cell(_value(parameter, context))
    text = getattr(default, "value", default)
    return {
        "option": f"{names} `{value}`" if value else names,
        "default": f"`{_cell(text)}`" if text != "" else "",
        "help": _cell(getattr(parameter, "help", "") or ""),
    }


SHARED = 4
"""Commands that have an option from which on it is a common one."""


def commands_page() -> str:
    """The page of commands: its introduction, exit codes and environment variables are written by hand."""
    found: dict[str, dict[str, Any]] = {}
    for name, command in _commands(get_command(loaded()), "p4perf"):
        context = typer.Context(command, info_name=name)
        arguments = [_argument(p) for p in command.params if p.param_type_name == "argument"]
        rows = [_option(p, context) for p in command.params if p.param_type_name == "option"]
        text = " ".join((command.help or "").split())
        found[name] = {"name": name, "help": text, "rows": [*arguments, *rows]}
    number = Counter(
        (row["option"], row["default"], row["help"]) for command in found.values() for row in command["rows"]
    )
    common = {key for key, times in number.items() if times >= SHARED}
    for command in found.values():
        shared = [row for row in command["rows"] if (row["option"], row["default"], row["help"]) in common]
        command["rows"] = [row for row in command["rows"] if row not in shared]
        names = ", ".join(row["option"].partition(" `")[0].split(",")[0] for row in shared)
        command["help"] = _filled(f"{command['help']} {f'Common options: {names}.' if shared else ''}")
    groups = [
        {"title": title, "commands": [c for n, c in found.items() if n.split()[1] in names]}
        for title, names in COMMANDS_BY_HEADING.items()
    ]
    rows = [{"option": option, "default": default, "help": text} for option, default, text in sorted(common)]
    page = (Path(__file__).parents[1] / "docs" / "commands.md").read_text(encoding="utf-8")
    return _between(page, MARK, _page(COMMANDS, groups=groups, common=rows), END)


def _kind(schema: Mapping[str, Any]) -> str:
    """What a value of that schema is, in a few words; nothing of an object, whose keys have rows of their own."""
    if "$ref" in schema:
        return ""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            kinds = dict.fromkeys(_kind(s) for s in schema[key] if s.get("type") != "null")
            return " or ".join(filter(None, kinds))
    if "const" in schema:
        return f"`{schema['const']}`"
    if len(schema.get("enum", ())) > MOST_WORDS:
        return "metric"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}".removesuffix(" of ")
    if isinstance(kind, list):
        return " or ".join(kind)
    bounds = [f"{sign} {schema[key]:g}" for key, sign in _BOUNDS.items() if key in schema]
    return f"{kind} {', '.join(bounds)}".strip()


MOST_WORDS = 12
"""Words of a key from which on they are names of metrics, which ``p4perf list metrics`` prints."""

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def _rows(schema: Mapping[str, Any], parts: Mapping[str, Any], place: str = "") -> Iterator[Mapping[str, Any]]:
    """A row for each key of a schema, those of the objects in it below them."""
    for key, value in schema.get("properties", {}).items():
        default = value.get("default")
        row = {
            "name": place + key,
            "required": key in schema.get("required", ()),
            "value": _cell(_kind(value)),
            "default": "" if default in (None, "") or isinstance(default, dict | list) else f"`{default}`",
            "help": _cell(value.get("description", "")),
        }
        if row["value"] or row["help"]:
            yield row
        for each in (value, *value.get("anyOf", ()), value.get("items", {}), value.get("additionalProperties") or {}):
            if isinstance(each, Mapping) and "$ref" in each:
                yield from _rows(parts[each["$ref"].rsplit("/", 1)[1]], parts, f"{place}{key}.")


def specs_page() -> str:
    """The page of specs: all but the keys is written by hand."""
    schema = ExperimentSpec.model_json_schema()
    rows = list(_rows(schema, schema["$defs"]))
    page = (Path(__file__).parents[1] / "docs" / "specs.md").read_text(encoding="utf-8")
    return _between(page, MARK, _page(SPECS, rows=rows), END)


@dataclass(frozen=True, slots=True)
class DescribedKey:
    """A line of the documentation: a key with its place, such as ``rows[].name``."""

    key: str
    type: str
    unit: str
    meaning: str


def key_table(record: type[Record], place: str = "") -> Iterator[DescribedKey]:
    """All keys of a record, those of nested records below them."""
    for name, declared in record.KEYS.items():
        hint = records._hints(record)[name]
        rest = ", optional" if declared.optional else ""
        if declared.stands_for:
            kind = _word(get_args(hint)[1]) + rest
            yield DescribedKey(f"{place}<{declared.stands_for}>", kind, declared.unit, declared.meaning)
            continue
        nested, dots = _nested(hint)
        if nested is not None and (declared.meaning or records._without_none(hint)[1]):
            yield DescribedKey(place + name, _word(hint) + rest, declared.unit, declared.meaning)
        if nested is not None:
            yield from key_table(nested, f"{place}{name}{dots}")
            continue
        for each, meaning, kind in records._described(name, declared, hint):
            yield DescribedKey(place + each, _word(kind) + rest, declared.unit, meaning)


def _nested(hint: Any) -> tuple[type[Record] | None, str]:
    """The record of an annotation, and what its keys are behind; intervals are explained once."""
    kind, _ = records._without_none(hint)
    dots = "."
    if get_origin(kind) is tuple:
        kind, dots = get_args(kind)[0], "[]."
    is_record = isinstance(kind, type) and issubclass(kind, Record) and kind is not Interval
    return (kind if is_record else None), dots


def _word(hint: Any) -> str:
    """The type of a value, as the documentation writes it."""
    kind, nullable = records._without_none(hint)
    if nullable:
        return f"{_word(kind)} or null"
    if kind is Any:
        return "any"
    if get_origin(kind) is tuple:
        return f"list of {_word(get_args(kind)[0])}"
    if get_origin(kind) in (Union, UnionType):
        return "scalar" if set(get_args(kind)) == set(get_args(Scalar)) else " or ".join(map(_word, get_args(kind)))
    return "interval" if kind is Interval else records._TYPES.get(kind, "mapping")


def documents_page() -> str:
    """The page of JSON: its introduction and the files of runs are written by hand."""
    page = (Path(__file__).parents[1] / "docs" / "json.md").read_text(encoding="utf-8")
    lists, papers, found = [], [], []
    known: dict[str, str] = {}
    for kind, document in documents().items():
        rows, text = list(key_table(document)), " ".join(text_of(document).split())
        if re.search(r"`p4perf (estimate|analyse) ", text):
            papers.append({"text": _wrapped(f"`{kind}`: {text_of(document).splitlines()[0]}")})
        elif all(row.key.startswith("rows[].") for row in rows):
            keys = _keys([replace(row, key=row.key.removeprefix("rows[].")) for row in rows])
            keys = _once(known, keys, f"`{kind}`")
            lists.append({"text": _wrapped(f"`{kind}`: {text.rstrip().rstrip('.')}. {keys}")})
        else:
            found.append({"kind": kind, "text": _filled(text), "body": _bullets(document, kind, known)})
    written = _page(DOCUMENTS, documents=found, papers=papers, lists=lists, version=DOCUMENT_VERSION)
    return _between(page, MARK, written, END)


def _bullets(record: type[Record], title: str, known: dict[str, str]) -> str:
    """An item for each object of a record, with its keys, or with the title where these are on the page already."""
    groups: dict[str, list[DescribedKey]] = {}
    for row in key_table(record):
        place, _, name = row.key.rpartition(".")
        groups.setdefault(place, []).append(replace(row, key=name))
    items = []
    for place, rows in groups.items():
        keys = _once(known, _keys(rows), f"`{place}` of `{title}`" if place else f"`{title}`")
        items.append(_wrapped(f"`{place}`: {keys}" if place else keys))
    return "\n".join(items)


LONG = 120
"""Characters of a list of keys from which on the page has it once."""


def _once(known: dict[str, str], keys: str, where: str) -> str:
    """Keys as the page has them: a second time it names the place of the first."""
    if len(keys) >= LONG and known.setdefault(keys, where) != where:
        return f"The keys of {known[keys]}."
    return keys


def _keys(rows: Sequence[DescribedKey]) -> str:
    """Keys in a sentence; the three of a value with its interval are one."""
    names = {row.key for row in rows}
    values = {name for name in names if {f"{name}_low", f"{name}_high"} <= names}
    ends = {f"{name}_{end}" for name in values for end in ("low", "high")}
    parts = []
    for row in rows:
        if row.key not in ends:
            kind = "" if row.type == "string" else row.type.replace(" or null", "?").removeprefix("string, ")
            notes = ", ".join(filter(None, ("±" if row.key in values else "", kind, row.unit)))
            text = f"`{row.key}` {f'({notes}) ' if notes else ''}{row.meaning}".rstrip()
            parts.append(text.rstrip("."))
    return "; ".join(parts) + "."


def _wrapped(text: str) -> str:
    """An item of a list in lines of 120 characters."""
    return _filled(f"- {text}", "  ")


def _filled(text: str, indent: str = "") -> str:
    """A paragraph in lines of 120 characters."""
    words = " ".join(text.split())
    return textwrap.fill(words, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _between(page: str, first: str, text: str, last: str) -> str:
    """A page with another text from a mark to the next end."""
    before, _, rest = page.partition(first)
    return f"{before}{text.rstrip()}{rest.partition(last)[2]}"


PAGES = {"commands.md": commands_page, "specs.md": specs_page, "json.md": documents_page}


def main(folder: Path) -> None:
    """Write the pages into a folder."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))

"""Write the reference pages: every command with its options, every key of a spec and of JSON, from the code itself.

Usage: python tools/reference.py [FOLDER]; by default the folder is docs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from jinja2 import Environment, StrictUndefined
from typer.main import get_command

from p4perf.cli import app
from p4perf.cli.inspect import documents
from p4perf.errors import ExitCode
from p4perf.experiment.campaign import ReportFile
from p4perf.records import DOCUMENT_VERSION, Record, key_table, text_of
from p4perf.specs.schema import ExperimentSpec

NOTE = "<!-- Written by tools/reference.py from the code; a test compares them. -->"

COMMANDS = """\
# Reference: commands

{{ note }}

Every command with its options, as `--help` has them. [Commands](commands.md) explains what they are for, with examples.
{% for command in commands %}

## {{ command.name }}

`{{ command.usage }}`

{{ command.help }}
{% if command.arguments %}

| argument | meaning |
|---|---|
{% for row in command.arguments %}
| `{{ row.name }}` | {{ row.help }} |
{% endfor %}
{% endif %}
{% if command.rows %}

| option | value | default | meaning |
|---|---|---|---|
{% for row in command.rows %}
| {{ row.names }} | {{ row.value }} | {{ row.default }} | {{ row.help }} |
{% endfor %}
{% endif %}
{% endfor %}

## Exit codes

| code | meaning |
|---|---|
{% for code in codes %}
| {{ code.value }} | {{ code.name.lower().replace("_", " ") }} |
{% endfor %}
"""

SPECS = """\
# Reference: keys of a spec

{{ note }}

Every key of a spec, from the schema that `p4perf check --schema` prints. [Specs](specs.md) explains them.
{% for part in parts %}

## {{ part.name }}

{{ part.help }}

| key | value | default | meaning |
|---|---|---|---|
{% for row in part.rows %}
| `{{ row.name }}`{{ " (required)" if row.required }} | {{ row.value }} | {{ row.default }} | {{ row.help }} |
{% endfor %}
{% endfor %}
"""

DOCUMENTS = """\
<!-- From here to the next mark written by tools/reference.py from the code; a test compares them. -->

## Every command

| key | type | unit | meaning |
|---|---|---|---|
| `schema_version` | integer | | version of this page: {{ version }} |
| `kind` | string | | what the object is: the titles below |

The keys below come on top. `p4perf check --schema KIND` prints the JSON Schema of a document. When a command fails with
an error message, stdout is empty, and the [exit code](commands.md#exit-codes) states the reason. `run` and `resume` can
print a model and still end with 4 (some points are missing), and `doctor` prints its checks when it ends with 3.
{% for document in documents %}

## {{ document.kind }}

{{ document.text }}

{{ document.table }}
{% endfor %}

<!-- The end of what is written by tools/reference.py. -->
"""


TABLE = """\
| key | type | unit | meaning |
|---|---|---|---|
{% for row in rows %}
| `{{ row.key }}` | {{ row.type }} |{% if row.unit %} {{ row.unit }}{% endif %} | {{ cell(row.meaning) }} |
{% endfor %}
"""

FILES = {"report.json": ReportFile}
"""Files whose keys are written into the page."""


def _page(template: str, **context: object) -> str:
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701
    return environment.from_string(template).render(note=NOTE, **context)


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
        "name": name if parameter.required or name.startswith("[") else f"[{name}]",
        "help": _cell(getattr(parameter, "help", "") or ""),
    }


def _option(parameter: Any, context: Any) -> Mapping[str, str]:
    flag = getattr(parameter, "is_flag", False)
    default = parameter.default
    if default is None or default is False or callable(default) or default == ():
        default = ""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = "" if flag else _cell(_value(parameter, context))
    text = getattr(default, "value", default)
    return {
        "names": names,
        "value": f"`{value}`" if value else "",
        "default": f"`{_cell(text)}`" if text != "" else "",
        "help": _cell(getattr(parameter, "help", "") or ""),
    }


def commands_page() -> str:
    """The page of commands."""
    found = []
    root = get_command(app)
    for name, command in _commands(root, "p4perf"):
        context = typer.Context(command, info_name=name)
        arguments = [_argument(p) for p in command.params if p.param_type_name == "argument"]
        rows = [_option(p, context) for p in command.params if p.param_type_name == "option"]
        usage = " ".join((name, *(a["name"] for a in arguments), "[OPTIONS]" if rows else "")).rstrip()
        text = "\n".join(line.strip() for line in (command.help or "").replace("\f", "").strip().splitlines())
        found.append({"name": name, "usage": usage, "help": text, "arguments": arguments, "rows": rows})
    return _page(COMMANDS, commands=found, codes=list(ExitCode))


def _kind(schema: Mapping[str, Any]) -> str:
    """What a value of that schema is, in a few words."""
    if "$ref" in schema:
        return f"[{_title(schema['$ref'])}](#{_title(schema['$ref']).lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            kinds = dict.fromkeys(_kind(s) for s in schema[key] if s.get("type") != "null")
            return " or ".join(kinds)
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if isinstance(kind, list):
        return " or ".join(kind)
    bounds = [f"{sign} {schema[key]:g}" for key, sign in _BOUNDS.items() if key in schema]
    return f"{kind} {', '.join(bounds)}".strip()


_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def _title(reference: str) -> str:
    return reference.rsplit("/", 1)[1].removesuffix("Spec")


def _part(name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    required = schema.get("required", ())
    rows = []
    for key, value in schema.get("properties", {}).items():
        default = value.get("default")
        shown = "" if default in (None, "") or isinstance(default, dict | list) else f"`{default}`"
        rows.append(
            {
                "name": key,
                "required": key in required,
                "value": _cell(_kind(value)),
                "default": shown,
                "help": _cell(value.get("description", "")),
            }
        )
    return {"name": name, "help": _cell(schema.get("description", "")), "rows": rows}


def specs_page() -> str:
    """The page of specs."""
    schema = ExperimentSpec.model_json_schema()
    parts = [_part("Experiment", schema)]
    parts += [_part(_title(f"/{name}"), part) for name, part in schema["$defs"].items() if part.get("properties")]
    return _page(SPECS, parts=parts)


def documents_page() -> str:
    """The page of JSON: its introduction and the files of runs are written by hand."""
    page = (Path(__file__).parents[1] / "docs" / "json.md").read_text(encoding="utf-8")
    found = [{"kind": kind, "text": text_of(d), "table": _table(d)} for kind, d in documents().items()]
    written = _page(DOCUMENTS, documents=found, version=DOCUMENT_VERSION)
    page = _between(page, written.splitlines()[0], written, written.splitlines()[-1])
    for name, record in FILES.items():
        mark, end = f"<!-- keys of {name} -->", "<!-- end of keys -->"
        page = _between(page, mark, f"{mark}\n\n{_table(record)}\n\n{end}", end)
    return page


def _table(record: type[Record]) -> str:
    return _page(TABLE, rows=list(key_table(record)), cell=_cell).rstrip()


def _between(page: str, first: str, text: str, last: str) -> str:
    """A page with another text from a mark to the next end."""
    before, _, rest = page.partition(first)
    return f"{before}{text}{rest.partition(last)[2]}"


PAGES = {"reference-commands.md": commands_page, "reference-specs.md": specs_page, "json.md": documents_page}


def main(folder: Path) -> None:
    """Write the pages into a folder."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))

"""The command that makes one file of a folder of results: pack."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import UsageError
from p4perf.records import Record, doc, listing


class _PackRow(Record):
    archive: str = doc("path of the zip")
    files: int = doc("files of the folder that are in it")
    size_bytes: int = doc("their size", "B")
    packed_bytes: int = doc("size of the zip", "B")


PackDocument = listing("pack", _PackRow, "`p4perf pack FOLDER`: one row.\n\nSee [packing](packing.md).")


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="Run directory, campaign or comparison.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The zip; default: named after the folder, in this one.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option("--licence", "--license", help="SPDX identifier or address, such as CC-BY-4.0.")
    ] = None,
    author: Annotated[list[str] | None, typer.Option("--author", help="'Jane Doe [<ORCID>]'. Repeatable.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="Title; default: what was measured.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Pack results into a zip that describes itself (RO-Crate), for an archive or for other people."""
    from p4perf.results.crate import Author, CrateOptions
    from p4perf.results.crate import pack as write_archive

    archive = output if output is not None else Path(f"{folder.absolute().name}.zip")
    options = CrateOptions(
        name=title,
        licence=licence,
        authors=tuple(map(Author.parse, author or ())),
        published=_published(os.environ.get("SOURCE_DATE_EPOCH")),
    )
    entries = write_archive(folder, archive, options)
    size = sum(entry.size_bytes for entry in entries)
    packed_bytes = archive.stat().st_size
    row = _PackRow(archive=str(archive), files=len(entries), size_bytes=size, packed_bytes=packed_bytes)
    emit(fmt, PackDocument(rows=(row,)))
    if licence is None:
        say("note: without --licence the results may not be reused")


def _published(text: str | None) -> datetime | None:
    """The time that reproducible builds set, in seconds since 1970."""
    if not text:
        return None
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"SOURCE_DATE_EPOCH={text} is not a time in seconds since 1970") from error

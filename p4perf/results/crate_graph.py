"""The entities of an RO-Crate, and how files, facts, people and licences become entities."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from p4perf.errors import UsageError
from p4perf.results.crate_options import Author
from p4perf.results.inventory import METADATA_FILE, FileEntry

APACHE = "https://spdx.org/licenses/Apache-2.0"
NO_LICENCE = "No licence was given: ask those who published these results before you use them."
FORMATS = {
    ".c": "text/x-c",
    ".csv": "text/csv",
    ".h": "text/x-c",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".lua": "text/x-lua",
    ".md": "text/markdown",
    ".p4": "text/x-p4",
    ".parquet": "application/vnd.apache.parquet",
    ".pcap": "application/vnd.tcpdump.pcap",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".sh": "text/x-shellscript",
    ".svg": "image/svg+xml",
    ".tex": "text/x-tex",
    ".toml": "application/toml",
    ".tsv": "text/tab-separated-values",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}
TEXT_FORMATS = (".log", ".spec", ".txt", ".io", "")
_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{1,63}")

Entity = dict[str, Any]


class Graph:
    """Entities by their ``@id``, each of them once, in the order in which they came."""

    def __init__(self) -> None:
        self._known: dict[str, Entity] = {}

    @property
    def entities(self) -> list[Entity]:
        """The two that have to be there first, then the others."""
        first = [METADATA_FILE, "./"]
        return [self._known[key] for key in [*first, *(key for key in self._known if key not in first)]]

    def add(self, entity: Entity) -> Entity:
        """Add an entity; returns the reference to it."""
        self._known.setdefault(entity["@id"], entity)
        return reference(entity["@id"])

    def fact(self, name: str, value: str) -> Entity:
        """A name with its value."""
        tag = hashlib.sha256(value.encode()).hexdigest()[:8]
        return self.add({"@id": f"#fact-{quote(name)}-{tag}", "@type": "PropertyValue", "name": name, "value": value})

    def software(self, version: str) -> Entity:
        """P4perf in a version."""
        return self.add(
            {
                "@id": f"#p4perf-{quote(version)}",
                "@type": "SoftwareApplication",
                "name": "p4perf",
                "description": "Measures generated data-plane programs and derives performance models.",
                "license": reference(APACHE),
                "softwareVersion": version,
            }
        )

    def people(self, authors: Iterable[Author]) -> list[Entity]:
        """The authors."""
        return [
            self.add(
                {
                    "@id": f"https://orcid.org/{who.orcid}" if who.orcid else f"#author-{quote(who.name)}",
                    "@type": "Person",
                    "name": who.name,
                }
            )
            for who in authors
        ]


def reference(identifier: str) -> Entity:
    """A reference to the entity with that ``@id``."""
    return {"@id": identifier}


def encoding_format(path: str) -> str:
    """The media type of a file by its name."""
    suffix = PurePosixPath(path).suffix
    return FORMATS.get(suffix, "text/plain" if suffix in TEXT_FORMATS else "application/octet-stream")


def file_id(path: str) -> str:
    """The identifier of a file: its path as a relative reference of RFC 3986."""
    return quote(path)


def file_entity(entry: FileEntry) -> Entity:
    """A file."""
    return {
        "@id": file_id(entry.path),
        "@type": "File",
        "name": entry.path,
        "encodingFormat": encoding_format(entry.path),
        "contentSize": str(entry.size_bytes),
        "sha256": entry.sha256,
    }


def licence_entity(graph: Graph, text: str | None) -> Entity | str:
    """The licence of the results: a reference, or a sentence where there is nothing to refer to.

    Args:
        graph: gets the entity.
        text: an SPDX identifier, an address or a sentence; None where there is no licence.

    Raises:
        UsageError: the text says nothing.
    """
    if text is None:
        return NO_LICENCE
    wanted = text.strip()
    if not wanted or not wanted.isprintable():
        raise UsageError(f"{text!r} is not a licence", hint="such as CC-BY-4.0")
    if urlsplit(wanted).scheme in ("http", "https"):
        address, name = wanted, wanted
    elif _SPDX.fullmatch(wanted):
        address, name = f"https://spdx.org/licenses/{wanted}", wanted
    else:
        return wanted
    about = f"The licence of these results: {name}."
    return graph.add({"@id": address, "@type": "CreativeWork", "name": name, "description": about})

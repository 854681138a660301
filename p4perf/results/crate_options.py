"""What the description of an archive says that its files cannot: title, licence, authors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from p4perf.errors import UsageError

_ORCID = re.compile(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]")


@dataclass(frozen=True)
class Author:
    """Who publishes the results.

    Args:
        name: as it is to be cited.
        orcid: such as ``0000-0002-1825-0097``; None if there is none.
    """

    name: str
    orcid: str | None = None

    def __post_init__(self) -> None:
        """Check that the name says something and that the ORCID is one.

        Raises:
            UsageError: it does not.
        """
        if not self.name.strip() or not self.name.isprintable():
            raise UsageError(f"{self.name!r} is not the name of an author")
        if self.orcid is not None and not _is_orcid(self.orcid):
            raise UsageError(f"{self.orcid!r} is not an ORCID", hint="such as 0000-0002-1825-0097")

    @classmethod
    def parse(cls, text: str) -> Author:
        """An author from text such as ``Jane Doe`` or ``Jane Doe <0000-0002-1825-0097>``.

        Raises:
            UsageError: it is neither.
        """
        match = re.fullmatch(r"\s*([^<>]+?)\s*(?:<(?:https?://orcid\.org/)?([^<>]*)>)?\s*", text)
        if match is None:
            raise UsageError(f"{text!r} is not the name of an author", hint="such as 'Jane Doe <0000-0002-1825-0097>'")
        return cls(match[1], match[2])


@dataclass(frozen=True)
class CrateOptions:
    """What the folder itself cannot say.

    Args:
        name: title; by default what the folder is.
        description: a sentence or two; by default what is in it.
        licence: an SPDX identifier such as ``CC-BY-4.0``, the address of a licence, or a sentence; None says that
            there is none.
        authors: who publishes it.
        published: when; by default the time of the newest run in it.
    """

    name: str | None = None
    description: str | None = None
    licence: str | None = None
    authors: tuple[Author, ...] = ()
    published: datetime | None = None


def _is_orcid(text: str) -> bool:
    """Whether the last character is the check character of ISO 7064, MOD 11-2."""
    if not _ORCID.fullmatch(text):
        return False
    total = 0
    for digit in text.replace("-", "")[:-1]:
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    return text[-1] == ("X" if check == 10 else str(check))

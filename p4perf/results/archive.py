"""A folder of results as one file: a zip with its description, the same bytes from the same folder.

Names are sorted, times are one given time, permissions are those of an ordinary file. Compression is that of zlib, so
another version of that library may make other bytes of the same content.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from p4perf.errors import DataError, Location, UsageError
from p4perf.results import files
from p4perf.results.crate import describe, newest, require_results
from p4perf.results.crate_options import CrateOptions
from p4perf.results.inventory import METADATA_FILE, FileEntry, inventory, pieces

_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
_LATEST = datetime(2107, 12, 31, tzinfo=UTC)
_ORDINARY_FILE = 0o100644 << 16
_UNIX = 3


def pack(folder: Path, archive: Path, options: CrateOptions | None = None) -> tuple[FileEntry, ...]:
    """Write a run directory, a campaign or a comparison into a zip, with its description at the root.

    The zip appears all at once; one that is there is replaced.

    Args:
        folder: what is packed.
        archive: the zip, outside of the folder.
        options: what goes into the description; ``published`` is also the time of the files in the zip, by default
            that of the newest run.

    Returns:
        The files of the folder that are in it.

    Raises:
        DataError: the folder is no result of p4perf, something in it cannot be read or is a link, or it changed while
            it was packed.
        UsageError: the archive is not called ``.zip``, is a folder, or lies within the folder that is packed.
        StorageError: it cannot be written; an old one stays as it was.
    """
    options = options or CrateOptions()
    require_results(folder)
    _check_place(folder, archive)
    entries = inventory(folder)
    text = describe(folder, entries, options)
    time = options.published or newest(folder, entries) or _EARLIEST
    stamp = min(max(time.astimezone(UTC), _EARLIEST), _LATEST)
    with files.storing(archive):
        archive.parent.mkdir(parents=True, exist_ok=True)
        temporary = files.temporary_sibling(archive)
        try:
            with temporary.open("xb") as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as bundle:
                    bundle.writestr(_info(METADATA_FILE, stamp), text)
                    for entry in entries:
                        _add(bundle, folder, entry, stamp)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(archive)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        files.sync_directory(archive.parent)
    return entries


def _check_place(folder: Path, archive: Path) -> None:
    if archive.suffix != ".zip":
        raise UsageError(f"{archive} is not called .zip", hint="give the archive a name that ends in .zip")
    if archive.is_dir():
        raise UsageError(f"{archive} is a folder")
    if archive.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{archive} lies in the folder that is packed", hint="put it somewhere else, with -o")


def _info(name: str, time: datetime) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (time.year, time.month, time.day, time.hour, time.minute, time.second // 2 * 2))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = _UNIX
    info.external_attr = _ORDINARY_FILE
    return info


def _add(bundle: zipfile.ZipFile, folder: Path, entry: FileEntry, time: datetime) -> None:
    """Add a file as the description says that it is."""
    info, digest = _info(entry.path, time), hashlib.sha256()
    info.file_size = entry.size_bytes
    with bundle.open(info, "w") as member:
        for piece in pieces(folder / entry.path):
            digest.update(piece)
            member.write(piece)
    if digest.hexdigest() != entry.sha256:
        raise DataError(
            "changed while it was packed",
            location=Location(str(folder / entry.path)),
            hint="pack a run when it is finished, not while it is measured",
        )

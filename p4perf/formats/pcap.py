"""Packet captures that specs replay: the classic format of libpcap, read whole and with suspicion."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.errors import DataError, Location
from p4perf.formats.plain import read_bytes

MAX_CAPTURE_BYTES = 64 << 20
MAX_FRAMES = 1_000_000

MAX_FRAME_BYTES = 9212

_ETHERNET = 1
_FILE_HEADER = 24
_RECORD_HEADER = 16
_FORMATS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""Byte order, and nanoseconds of a unit of the second part of a time, by the first bytes of a file."""

_PCAPNG = b"\x0a\x0d\x0d\x0a"


@dataclass(frozen=True, slots=True)
class Capture:
    """Frames of a capture, without FCS, and when they came.

    ``times_ns`` count from the first frame and never go back. ``raw`` is the file.
    """

    frames: tuple[bytes, ...] = field(repr=False)
    times_ns: tuple[int, ...] = field(repr=False)
    raw: bytes = field(repr=False)
    sha256: str

    @property
    def gaps_ns(self) -> tuple[int, ...]:
        """Time from each frame to the next; after the last one the mean of the others."""
        if len(self.times_ns) < 2:
            return (0,) * len(self.times_ns)
        gaps = [after - before for before, after in zip(self.times_ns, self.times_ns[1:], strict=False)]
        return (*gaps, self.times_ns[-1] // (len(self.times_ns) - 1))

    @property
    def rate_pps(self) -> float | None:
        """Packets per second, None if all came at once."""
        total_ns = sum(self.gaps_ns)
        return 1e9 * len(self.frames) / total_ns if total_ns > 0 else None


def read_capture(path: Path) -> Capture:
    """Read a capture of Ethernet frames.

    Raises:
        DataError: the file cannot be read, is too large, is no such capture, holds no frame, or one that is cut or too
            long; the message names the packet, counted from 1 as Wireshark does.
    """
    where = Location(str(path))
    data = read_bytes(path, MAX_CAPTURE_BYTES, "editcap -r cuts it")
    known = _FORMATS.get(data[:4])
    if known is None:
        newer = data.startswith(_PCAPNG)
        raise DataError(
            "is not a pcap file" + (", it is empty" if not data else ", but pcapng" if newer else ""),
            location=where,
            hint="editcap -F pcap converts it" if newer else None,
        )
    if len(data) < _FILE_HEADER:
        raise DataError("ends within its head", location=where)
    order, unit_ns = known
    link = struct.unpack_from(order + "I", data, 20)[0] & 0x0FFFFFFF
    if link != _ETHERNET:
        raise DataError(f"has no Ethernet frames (link type {link})", location=where)
    return _frames(data, order, unit_ns, where)


def _frames(data: bytes, order: str, unit_ns: int, where: Location) -> Capture:
    frames: list[bytes] = []
    times_ns: list[int] = []
    at = _FILE_HEADER
    while at < len(data):
        number = len(frames) + 1
        if number > MAX_FRAMES:
            raise DataError(f"has more than {MAX_FRAMES} frames", location=where)
        if len(data) - at < _RECORD_HEADER:
            raise DataError(f"ends within the head of packet {number}", location=where)
        seconds, part, kept, length = struct.unpack_from(order + "4I", data, at)
        at += _RECORD_HEADER
        if kept != length:
            raise DataError(
                f"packet {number} was cut to {kept} of {length} B", location=where, hint="capture with -s 0"
            )
        if not 0 < kept <= MAX_FRAME_BYTES:
            raise DataError(f"packet {number} has {kept} B, not 1 to {MAX_FRAME_BYTES}", location=where)
        if len(data) - at < kept:
            raise DataError(f"ends within packet {number}", location=where)
        frames.append(data[at : at + kept])
        time_ns = seconds * 1_000_000_000 + part * unit_ns
        times_ns.append(max(time_ns, times_ns[-1] if times_ns else time_ns))
        at += kept
    if not frames:
        raise DataError("holds no frame", location=where)
    begin = times_ns[0]
    digest = hashlib.sha256(data).hexdigest()
    return Capture(tuple(frames), tuple(t - begin for t in times_ns), data, digest)

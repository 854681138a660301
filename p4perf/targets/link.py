"""The port of a device under test: what connects it with a load generator, and the room that a stamp needs."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from p4perf.errors import CapabilityError
from p4perf.formats.pcap import Capture
from p4perf.programs.ir import Workload
from p4perf.programs.packets import FCS_BYTES, headers_size_bytes
from p4perf.targets.base import NodeFacts

PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

FRAMES_FILE = "frames.bin"

MIN_FRAME_BYTES = 60
"""Smallest frame of Ethernet without its FCS; shorter ones are filled up with zeros, as a sender does."""

STAMP_BYTES = 16
"""The load generator's own bytes at the end of every frame: time, number and segment."""


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """A link between load generator and device.

    ``kind`` is ``ring``, ``memif`` or ``af-packet``, or ``interfaces`` of a load generator elsewhere. ``slots`` is how
    many packets it holds in each direction. ``sizes_bytes`` are frame sizes with FCS in the order in which they are
    sent again and again; empty: all are alike.
    """

    kind: str = "ring"
    slots: int = 1024
    sizes_bytes: tuple[int, ...] = ()
    capture: Capture | None = None
    """Frames that are sent in turn instead of those of the workload."""
    hugepages: bool = False
    """Buffers and tables lie in hugepages, if there are enough of them."""


def check_stamp_room(workload: Workload, link: LinkPlan) -> None:
    """Refuse frames in which headers and stamp overlap."""
    if link.capture is not None:
        return  # what headers its frames have is not known
    smallest = min(link.sizes_bytes, default=workload.packets.frame_size_bytes)
    headers = headers_size_bytes(workload.program, workload.packets)
    needed = headers + STAMP_BYTES + FCS_BYTES
    if needed > smallest:
        raise CapabilityError(
            f"a frame of {smallest} B has no room for {headers} B of headers, the {STAMP_BYTES} B stamp of the load "
            "generator and the FCS",
            key="traffic.frame_size",
            hint=f"use a frame size of at least {needed} B",
        )


def interleaved(mix: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """Frame sizes, as many as the weights have in sum, each as evenly spread as its weight allows."""
    total = sum(weight for _, weight in mix)
    due = [0] * len(mix)
    order = []
    for _ in range(total):
        due = [d + weight for d, (_, weight) in zip(due, mix, strict=True)]
        chosen = max(range(len(mix)), key=lambda n: due[n])
        due[chosen] -= total
        order.append(mix[chosen][0])
    return tuple(order)


def link_files(link: LinkPlan, largest_bytes: int) -> dict[str, bytes]:
    """Files that the harness needs for a link: the frames of a capture.

    The file has the number of frames (u32), then of each the gap to the next in ns (u64), its length (u16) and its
    bytes, all in the byte order of x86.
    """
    if link.capture is None:
        return {}
    longest = max(len(frame) for frame in link.capture.frames) + FCS_BYTES
    if longest > largest_bytes:
        message = f"the capture has a frame of {longest} B with FCS, and the target takes {largest_bytes} B"
        raise CapabilityError(message, key="traffic.replay.pcap")
    pieces = [struct.pack("<I", len(link.capture.frames))]
    for captured, gap_ns in zip(link.capture.frames, link.capture.gaps_ns, strict=True):
        frame = captured.ljust(MIN_FRAME_BYTES, b"\0")
        pieces += [struct.pack("<QH", gap_ns, len(frame)), frame]
    return {FRAMES_FILE: b"".join(pieces)}


def check_link(label: str, links: Sequence[str], link: LinkPlan) -> None:
    if link.kind not in links:
        hint = f"it has {', '.join(links)}"
        raise CapabilityError(f"target {label} has no port for the link {link.kind}", key="load.link", hint=hint)


def check_frame_size(who: str, frame_size_bytes: int, most_bytes: int) -> None:
    """Refuse frames that are larger than a device takes, FCS included."""
    if frame_size_bytes > most_bytes:
        message = f"{who} takes frames of at most {most_bytes} B, not {frame_size_bytes} B"
        raise CapabilityError(message, key="traffic.frame_size")


def load_arguments(link: LinkPlan, memory_bytes: int, facts: NodeFacts, command: Sequence[str] = ()) -> list[str]:
    """Arguments of the harness as load generator, up to those of the point.

    They are the options of the EAL of the generator, those of the EAL of the device where it is a process of its own,
    and the words of the link, each ended by ``--``.

    Args:
        command: of a device that is another program, where it is; its CPU is passed as ``--cpu``.
    """
    chosen = facts.cpus
    if len(chosen) < 2:
        hint = "allow this process two CPUs (taskset)"
        raise CapabilityError("load generator and device need a CPU each", key="load", hint=hint)
    device, generator = chosen[:2]
    mebibytes = memory_bytes * 5 // 4 // 2**20 + 128
    enough = HUGEPAGE_MEBIBYTES * (facts.number("hugepages_free") or 0) >= mebibytes + GENERATOR_MEBIBYTES
    pages = "--in-memory" if link.hugepages and enough else "--no-huge"
    common = ["--no-pci", "--no-telemetry", "--no-shconf", "--log-level=4", pages]
    words = [f"slots={link.slots}"]
    if link.capture is not None:
        words.append("frames={folder}/" + FRAMES_FILE)
    if link.sizes_bytes:
        words.append(f"sizes={','.join(str(size - FCS_BYTES) for size in link.sizes_bytes)}")
    if link.kind == "ring":
        cores = ["-l", f"{generator},{device}", "--main-lcore", str(generator)]
        return [*cores, *common, "-m", str(mebibytes), "--", "--", *words, "--"]
    name, of_generator, of_device = _VDEVS[link.kind](link.slots)
    eal = ["-l", str(generator), *common, "-m", str(GENERATOR_MEBIBYTES), "--file-prefix", "generator"]
    eal += ["--vdev", of_generator]
    device_eal = ["-l", str(device), *common, "-m", str(mebibytes), "--file-prefix", "device", "--vdev", of_device]
    words += [f"port={name}", f"veth={int(link.kind == 'af-packet')}"]
    if command:
        device_eal = [*command, "--cpu", str(device)]
        words += ["command=1", f"mtu={PAGE_MTU}"]
    return [*eal, "--", *device_eal, "--", *words, "--"]


PAGE_MTU = 3000
"""MTU for programs that want a frame in one page, with room before and behind it, as native XDP on veth does."""

HUGEPAGE_MEBIBYTES = 2

GENERATOR_MEBIBYTES = 192
"""Memory of a generator in a process of its own: two pools of packets."""


def _memif(slots: int) -> tuple[str, str, str]:
    """Shared memory between two processes; the ring has a power of two of slots."""
    size = max(slots - 1, 1).bit_length()
    shared = f"id=0,socket={{folder}}/memif.sock,socket-abstract=no,rsize={size}"
    return "net_memif0", f"net_memif0,role=client,{shared}", f"net_memif0,role=server,{shared}"


def _af_packet(slots: int) -> tuple[str, str, str]:
    """Sockets of the kernel at both ends of a veth pair."""
    frames = f"blocksz=4096,framesz=2048,framecnt={slots},qpairs=1"
    return "net_af_packet0", f"net_af_packet0,iface=generator,{frames}", f"net_af_packet0,iface=device,{frames}"


_VDEVS = {"memif": _memif, "af-packet": _af_packet}

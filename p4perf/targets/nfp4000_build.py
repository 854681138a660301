"""How a program becomes firmware for an Agilio CX: the card, the flags of nfp4build, the plan of the build.

Flags and names are those of public builds with SDK 6.1-preview; the SDK itself is proprietary.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from p4perf.errors import CapabilityError
from p4perf.targets.base import BuildPlan, NodeFacts

FIRMWARE = "firmware.nffw"
OUTPUT = "out"
"""Folder of a build for what nfp4build makes besides the firmware."""

DESIGN = f"{OUTPUT}/pif_design.json"
"""The description of the program that the runtime needs to load the firmware."""

COMPILE_TIME = "compile_ms"
"""File of a build with the time that nfp4build took, in milliseconds."""

BUILD_TIMEOUT_S = 3600.0
"""How long a build may take, in seconds: it compiles C for some fifty microengines."""

SDK_FOLDER = "/opt/netronome/p4"
"""Where the SDK is, if the path of nfp4build does not say."""

PORT_STRIDES = {"lithium": 1, "hydrogen": 4, "beryllium": 4, "carbon": 1, "starfighter1": 1}
"""Platforms of nfp4build (``-l``), and how far apart the numbers of neighbouring physical ports are.

A port of 40 Gbit/s takes four channels: rtecli lists ``p0`` and ``p4`` for a card with two of them. Only those and
lithium (two of 10 Gbit/s, ``p0`` and ``p1``) are known from public output; for the others it is assumed, and the ports
are looked for before a design is used.
"""

CARDS = {"AMDA0096-0001": "lithium", "AMDA0081-0001": "hydrogen"}
"""Part numbers of cards that public builds give beside their platform."""

DEFAULT_PLATFORM = "lithium"
"""What is planned for where no card is known; nothing can be measured there."""

_PART = re.compile(r"(AMDA\d{4}-\d{4})")

_BUILD = f"""mkdir -p {OUTPUT} || exit
start=$(date +%s%N)
"$@" >nfp4build.log 2>&1 || {{ status=$?; cat nfp4build.log >&2; exit "$status"; }}
end=$(date +%s%N)
for product in {FIRMWARE} {DESIGN}; do
	[ -s "$product" ] || {{ cat nfp4build.log >&2; echo "error: nfp4build left no $product" >&2; exit 1; }}
done
echo $(((end - start) / 1000000)) >{COMPILE_TIME}
cat nfp4build.log"""
"""nfp4build drives make and several compilers: what they say may be on either output."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card: its platform, how nfp4build is told of it, and the distance of its ports' numbers."""

    platform: str
    flags: tuple[str, ...]
    port_stride: int


def model_of(facts: NodeFacts) -> str:
    """What the card of a node is called, by platform or by part number; empty if that is not known."""
    return (facts.text("nfp_model") or facts.text("nfp_partno")).strip()


def card_of(facts: NodeFacts) -> Card:
    """The card of a node.

    ``nfp_model`` is what nfp-hwinfo calls ``assembly.model``, the platform; a part number is understood too.

    Raises:
        CapabilityError: it is none that is known.
    """
    model = model_of(facts) or DEFAULT_PLATFORM
    for platform, stride in PORT_STRIDES.items():
        if model.lower().startswith(platform):
            return Card(platform, ("-l", platform), stride)
    part = _PART.match(model)
    if part is not None and part[1] in CARDS:
        platform = CARDS[part[1]]
        return Card(platform, ("--sku", f"{part[1]}:0", "-l", platform), PORT_STRIDES[platform])
    known = ", ".join((*PORT_STRIDES, *CARDS))
    raise CapabilityError(
        f"the card {model[:40]!r} (assembly.model of nfp-hwinfo) is none that is known: {known}", key="target"
    )


def firmware_plan(source: str, card: Card, variants: Collection[str], facts: NodeFacts) -> BuildPlan:
    """The build of a program in P4.

    Args:
        source: the program. What stands before its first line of code is left out, so that equal programs are built
            once, whatever they are called.
        card: what it is built for.
        variants: of the target.
        facts: of the node that it is built on.
    """
    tool = facts.text("tool_nfp4build", "nfp4build")
    command = ("sh", "-c", _BUILD, "sh", tool, *_flags(card, variants, tool))
    context = {key: facts.text(key) for key in ("nfp_sdk_version", "nfp4build_checksum")}
    return BuildPlan({"program.p4": _bare(source)}, (command,), FIRMWARE, context, timeout_s=BUILD_TIMEOUT_S)


def _flags(card: Card, variants: Collection[str], tool: str) -> list[str]:
    """Which of two modes is the default of nfp4build is not documented: one of them is always named."""
    flags = ["-o", FIRMWARE, "-p", OUTPUT, "-4", "program.p4", *card.flags]
    flags += ["--nfp4c_p4_version", "16", "--nfp4c_p4_compiler", "p4c-nfp", "--no-debug-info"]
    flags.append("--reduced-thread-usage" if "reduced-threads" in variants else "--no-reduced-thread-usage")
    flags.append("--shared-codestore" if "shared-codestore" in variants else "--no-shared-codestore")
    if "flowcache" not in variants:
        # Its headers are included even where it is disabled.
        include = f"{_sdk_folder(tool)}/components/flowcache/me/lib/flowcache"
        flags += ["--disable-component", "flowcache", "-D", "PIF_GLOBAL_FLOWCACHE_DISABLED", "-I", include]
    return flags


def _sdk_folder(tool: str) -> str:
    path = PurePosixPath(tool)
    return str(path.parent.parent) if path.is_absolute() and path.parent.name == "bin" else SDK_FOLDER


def _bare(source: str) -> str:
    lines = source.splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("//")), 0)
    return "".join(lines[first:])

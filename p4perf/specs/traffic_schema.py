"""The traffic of a spec: which packets come, how they are spread over flows and over time, and how many."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag
from pydantic import model_validator as checked

from p4perf.specs.messages import fault
from p4perf.specs.types import (
    BurstGap,
    BurstLength,
    CaptureName,
    DistributionName,
    FieldName,
    FieldNumber,
    Fraction,
    Fractions,
    FrameSize,
    HexBytes,
    Mix,
    PatternName,
    RateMpps,
    Strict,
    Word,
    ZipfExponent,
)


class FlowsSpec(Strict):
    """How packets are spread over the keys of a table."""

    distribution: Annotated[DistributionName, Field(description="which keys the packets carry")] = "uniform"
    zipf_s: Annotated[ZipfExponent | None, Field(description="exponent of the Zipf distribution (default 1)")] = None
    over: Annotated[Word | None, Field(description="variable or parameter that is the number of keys")] = None

    @checked(mode="after")
    def _zipf_only(self) -> FlowsSpec:
        if self.zipf_s is not None and self.distribution != "zipf" and not self.distribution.startswith("$"):
            raise fault("zipf_s needs the distribution zipf", path=("zipf_s",), hint="write distribution: zipf")
        return self


class RateLoad(Strict):
    """A fixed offered load."""

    rate_mpps: Annotated[RateMpps, Field(description="offered load in million packets per second")]


class FractionLoad(Strict):
    """Offered loads as fractions of the highest rate that the device takes."""

    fraction_of_max: Annotated[
        Fractions, Field(min_length=1, description="offered loads, as fractions of the maximum: one, $name, or a list")
    ]


class BurstSpec(Strict):
    """Packets in groups: so many one right after the other, then a pause."""

    length: Annotated[BurstLength, Field(description="packets in a burst")] = 32
    gap_us: Annotated[
        BurstGap | None, Field(description="pause after a burst in us; without it, what the offered load leaves")
    ] = None
    spacing_ns: Annotated[
        Annotated[float, Field(ge=0, le=1e9)], Field(description="time between packets of a burst in ns")
    ] = 0.0


class ReplaySpec(Strict):
    """Frames of a capture instead of generated ones. The last 16 bytes of each are the stamp of the load generator."""

    pcap: Annotated[CaptureName, Field(description="capture in the format of libpcap, beside the spec or below it")]
    timing: Annotated[
        Literal["recorded", "offered"],
        Field(description="recorded: the gaps of the capture; offered: the pattern and offered load of the traffic"),
    ] = "offered"
    sha256: Annotated[
        str | None,
        Field(pattern=r"^[0-9a-f]{64}$", description="what the capture has to be; filled in if it is absent"),
    ] = None


def _load(value: Any) -> str | None:
    match value:
        case "max":
            return "<max>"
        case {"rate_mpps": _} | RateLoad():
            return "<rate>"
        case {"fraction_of_max": _} | FractionLoad():
            return "<fraction>"
        case _:
            return None


OfferedLoad = Annotated[
    Annotated[Literal["max"], Tag("<max>")]
    | Annotated[RateLoad, Tag("<rate>")]
    | Annotated[FractionLoad, Tag("<fraction>")],
    Discriminator(
        _load,
        custom_error_type="p4perf_form",
        custom_error_message="expected max, {rate_mpps: 1.0} or {fraction_of_max: [0.1, 0.5]}",
    ),
]


class TrafficSpec(Strict):
    """What the load generator sends."""

    pattern: Annotated[PatternName, Field(description="how the packets are spaced")] = "cbr"
    burst: Annotated[BurstSpec | None, Field(description="bursts of the pattern burst")] = None
    frame_size: Annotated[FrameSize, Field(description="frame size in bytes including the FCS (RFC 2544)")] = 64
    mix: Annotated[
        Mix | None,
        Field(description="frame sizes and their weights instead of one size, or imix (7:4:1 of 64, 594, 1518 B)"),
    ] = None
    fields: Annotated[
        dict[FieldName, FieldNumber],
        Field(description="constant values of header fields that the components do not vary, such as ethernet.src"),
    ] = {}  # noqa: RUF012 - pydantic copies it
    payload: Annotated[
        HexBytes, Field(description="bytes behind the headers, in hexadecimal digits, again and again to the end")
    ] = "00"
    offered_load: Annotated[OfferedLoad, Field(description="packets offered per second")] = "max"
    flows: Annotated[FlowsSpec, Field(description="how the packets are spread over keys")] = FlowsSpec()
    replay: Annotated[ReplaySpec | None, Field(description="a capture to send instead of generated frames")] = None
    latency_at: Annotated[
        tuple[Fraction, ...], Field(description="loads at which latency is measured, as fractions of the maximum")
    ] = ()

    @checked(mode="after")
    def _one_source(self) -> TrafficSpec:
        if self.replay is not None and self.mix is not None:
            raise fault("a capture has the sizes of its frames", path=("mix",), hint="leave out mix or replay")
        if self.replay is not None and self.replay.timing == "recorded" and self.offered_load != "max":
            hint = "leave out offered_load, or write timing: offered"
            raise fault("a capture with its recorded gaps has its own rate", path=("offered_load",), hint=hint)
        return self

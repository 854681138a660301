"""The command that measures what elementary operations cost here and writes the description of this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from p4perf.cli.app import app
from p4perf.cli.output import say


@app.command()
def calibrate(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the description (YAML); without it the screen.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the machine; by default the model of its processor.")
    ] = None,
    starts: Annotated[int, typer.Option("--starts", min=1, max=100, help="Accepted starts of each benchmark.")] = 3,
    plain: Annotated[bool, typer.Option("--plain", help="The core is isolated: no gate, no real-time bursts.")] = False,
    testbed: Annotated[str, typer.Option("--testbed", help="Where to measure: local, or ssh:FILE:NODE.")] = "local",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Measure what every elementary operation costs here, one by one, and describe this machine for p4perf eo.

    Needs what target dpdk-c needs, and takes a few minutes.
    """
    from p4perf.evaluation.eo.files import parse_hardware
    from p4perf.experiment import open_testbed
    from p4perf.experiment.calibration import calibrate as measure
    from p4perf.results.files import write_text_atomically

    found = measure(
        open_testbed(testbed),
        name=name or "",
        starts=starts,
        mode="plain" if plain else "gated",
        told=lambda line: None if quiet else say(line),
    )
    text = found.text()
    parse_hardware(text.encode(), str(output or "the description"))
    if output is None:
        sys.stdout.write(text)
    else:
        write_text_atomically(output, text)
        say(f"{output} describes {found.name}: p4perf eo switch/basic --hardware {output}")

"""Specifications of SWX that leave nothing to earlier packets."""

from __future__ import annotations

from p4perf.formats.swx_spec import read_specification


def cleared(text):
    """A specification that clears its memory when a packet comes in, and drops nothing before it knows why.

    So all of its packets have an outcome, and most are sent.
    """
    spec = read_specification(text, "program.spec")
    rx = spec.apply.lines[0]
    found = [f"mov m.{n} 0x0" for n, bits in spec.structs[spec.metadata] if bits <= 64 and f"m.{n}" != rx.words[1]]
    for header, kind in spec.headers.items():
        if kind not in spec.varying:
            zeroes = (f"mov h.{header}.{n} 0x0" for n, bits in spec.structs[kind] if bits <= 64)
            found += [f"validate h.{header}", *zeroes, f"invalidate h.{header}"]
    lines = text.splitlines()
    lines[rx.number - 1] = "\n".join([lines[rx.number - 1], *found])
    drop = "mov m.psa_ingress_output_metadata_drop "
    return "\n".join(lines).replace(f"{drop}0x1", f"{drop}0x0").replace(f"{drop}1\n", f"{drop}0\n") + "\n"

"""Many generated programs in one binary, so that checking one costs a compiler call for it and nothing else."""

import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

from p4perf.generators.c.dpdk import render_program
from p4perf.targets import oracle
from p4perf.targets.builds import LIBRARY_FILES, harness_text
from p4perf.targets.dpdk_c import program_bytes

HARNESS = ("harness.h", "clock.h", "operators.h", "verify.c", "words.h", "source.c", "quantiles.h", *LIBRARY_FILES)
FLAGS = (
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-maybe-uninitialized",
    "-Wno-type-limits",
    "-D_GNU_SOURCE",
)
DRIVER = Path(__file__).with_name("many_programs.c")
PACKETS = 512


def pkg_config(what):
    return subprocess.run(["pkg-config", what, "libdpdk"], capture_output=True, text=True, check=True).stdout.split()


def spoilt_packets(workload, packets, seed, *kinds):
    """The packets of the verification file, every other one with some bytes changed."""
    rng = random.Random(seed)
    frames = oracle_packets(workload, packets, seed, *kinds)
    for n in range(0, packets, 2):
        data = bytearray(frames[n])
        for _ in range(rng.randrange(12) if data else 0):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 0xFF, rng.randrange(256)))
        frames[n] = bytes(data)
    return frames


oracle_packets = oracle.drawn_packets


def verification(workload, seed):
    with patch.object(oracle, "drawn_packets", spoilt_packets):
        return oracle.verification_file.__wrapped__(workload, packets=PACKETS, seed=seed, given=oracle.given_to)


def check_many(workloads, folder, variants=(), seed=1):
    """What is wrong with each program of some workloads, "" if nothing is: a list in their order."""
    for name, text in harness_text(HARNESS).items():
        (folder / name).write_text(text)
    roles = [f"p{n}" for n in range(len(workloads))]
    for role, workload in zip(roles, workloads, strict=True):
        (folder / f"{role}.c").write_text(render_program(workload.program, role, variants))
        (folder / f"{role}.bin").write_bytes(verification(workload, seed))
    declared = "".join(f"extern const struct program program_{role};\n" for role in roles)
    listed = "".join(f"\t&program_{role},\n" for role in roles)
    (folder / "list.c").write_text(
        f'#include "harness.h"\n{declared}const struct program *const programs[] = {{\n{listed}}};\n'
    )
    (folder / "driver.c").write_text(DRIVER.read_text())
    cflags = pkg_config("--cflags")

    def build(source):
        command = ["cc", *FLAGS, *cflags, "-march=native", "-c", source]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    sources = [path.name for path in folder.glob("*.c")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(build, sources))
    objects = [source.replace(".c", ".o") for source in sources]
    subprocess.run(["cc", "-o", "many", *objects, *pkg_config("--libs"), "-lm"], cwd=folder, check=True)
    memory = sum(program_bytes(w.program, variants) for w in workloads) * 5 // 4 // 2**20 + 128
    command = ["./many", "-l", "0", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=4"]
    command += ["-m", str(memory), "--"]
    for role, workload in zip(roles, workloads, strict=True):
        command += [f"{role}.bin", ",".join(str(t.entries.count) for t in workload.program.tables)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line[:1].isdigit()]
    assert len(lines) == len(workloads), (done.returncode, done.stdout[-500:], done.stderr[-500:])
    verdicts = [line.partition(" ") for line in lines]
    return [error or ("" if int(count) == PACKETS else f"{count} packets") for count, _, error in verdicts]

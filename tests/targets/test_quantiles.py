"""Zipf's law as the harnesses draw it: bins of equal probability, uniform inside a bin."""

import subprocess

import numpy as np
import pytest

from p4perf.targets.builds import harness_text

BINS = 4096
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "quantiles.h"

int
main(int argc, char **argv)
{
	static uint32_t low[4096], width[4096];
	unsigned int i;

	if (argc != 3)
		return 2;
	fill_quantiles(strtoul(argv[1], NULL, 10), strtod(argv[2], NULL), 4096, low, width);
	for (i = 0; i < 4096; i++)
		printf("%u %u\n", low[i], width[i]);
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quantiles")
    (folder / "quantiles.h").write_text(harness_text(["quantiles.h"])["quantiles.h"])
    (folder / "driver.c").write_text(DRIVER)
    subprocess.run(["cc", "-std=gnu11", "-O2", "-o", "driver", "driver.c", "-lm"], cwd=folder, check=True)
    return folder / "driver"


def probabilities(program, keys, exponent):
    """Of every rank, as bins are drawn evenly and ranks evenly inside a bin."""
    text = subprocess.run([program, str(keys), str(exponent)], capture_output=True, text=True, check=True).stdout
    found = np.zeros(keys)
    for low, width in np.fromstring(text, dtype=int, sep=" ").reshape(BINS, 2):
        found[low : low + width] += 1 / BINS / width
    return found


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.0, 1.25])
@pytest.mark.parametrize("keys", [10, 1000, 1_000_000])
def test_ranks_have_the_probabilities_of_the_continuous_law(program, keys, exponent):
    found = np.cumsum(probabilities(program, keys, exponent))
    edges = np.arange(1, keys + 1) + 1.0
    power = 1.0 - exponent
    law = np.log(edges) if exponent == 1.0 else (edges**power - 1) / power
    assert found[-1] == pytest.approx(1)
    assert np.abs(found - law / law[-1]).max() < 2 / BINS


def test_a_larger_exponent_prefers_the_first_ranks(program):
    first = [probabilities(program, 1000, exponent)[:10].sum() for exponent in (0.0, 0.8, 1.25)]
    assert first[0] == pytest.approx(0.01, abs=1 / BINS)
    assert first[0] < first[1] < first[2]

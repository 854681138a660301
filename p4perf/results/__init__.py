"""THE RECORD: the run directory, the only thing that knows where files lie.

A run directory is what people archive, mail and cite::

    runs/mat-exact-entries--dpdk-c--local--20261121T101500/
      spec.yaml             as resolved
      manifest.json         schema version, versions, hashes, machine, options
      points/<hash>/        generated files, build log, raw.jsonl with every trial, finished.json
      measurements.parquet  the tidy table
      model.json            the derived model
      plots/                figures

Whatever kills the process, and whenever: a file is either the old one or the new one, and a trial that was
acknowledged is there exactly once.
"""

from p4perf.results.manifest import SCHEMA_VERSION, RunState
from p4perf.results.rundir import RunDirectory

__all__ = ["SCHEMA_VERSION", "RunDirectory", "RunState"]

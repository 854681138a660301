"""THE RECORD: the run directory. :class:`Run` reads it, :class:`RunDirectory` writes it; no other room knows its files.

A run directory is what people archive, mail and cite::

    runs/mat-exact-entries--dpdk-c--local--20261121T101500/
      spec.yaml             as resolved
      manifest.json         schema version, versions, hashes, machine, options
      points/<hash>/        generated files, build log, raw.jsonl with every trial, finished.json
      measurements.parquet  the tidy table
      model.json            the derived model
      plots/                figures

Whatever kills the process, and whenever: a file is either the old one or the new one, and an acknowledged trial is
there exactly once.
"""

from p4perf.results.manifest import Manifest as Manifest
from p4perf.results.manifest import RunIdentity as RunIdentity
from p4perf.results.names import all_run_folders as all_run_folders
from p4perf.results.names import find_run as find_run
from p4perf.results.run import Run as Run
from p4perf.results.run import is_run as is_run
from p4perf.results.run import read_model as read_model
from p4perf.results.run import readable_runs as readable_runs
from p4perf.results.run import run_folders as run_folders
from p4perf.results.rundir import RunDirectory as RunDirectory

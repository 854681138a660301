#!/bin/sh
# Usage: make-environment.sh PYTHON FOLDER. Make a virtual environment with p4perf (editable) and its tools.
set -eu
python=$1
folder=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "p4perf needs Python 3.11 or newer; $python is not. Name another: make PYTHON=/path/to/python3" >&2
    exit 1
fi
if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    echo "== virtual environment in $folder"
    "$python" -m venv --clear "$folder"
fi
echo "== p4perf and its tools, in the versions of constraints.txt"
"$folder/bin/python" -m pip install --quiet --constraint constraints.txt --editable '.[dev]'

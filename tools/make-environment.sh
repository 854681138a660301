#!/bin/sh
# Usage: make-environment.sh PYTHON FOLDER [EXTRA]. Make a virtual environment with p4perf (editable), and with what
# an extra of pyproject.toml adds.
set -eu
python=$1
folder=$2
extra=${3:-}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "p4perf needs Python 3.11 or newer; $python is not. Name another: make PYTHON=/path/to/python3" >&2
    exit 1
fi
if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    echo "== virtual environment in $folder"
    "$python" -m venv --clear "$folder"
fi
echo "== p4perf${extra:+ [$extra]}, in the versions of constraints.txt"
log=$folder/install.log
began=$(date +%s)
"$folder/bin/python" -m pip install --progress-bar off --constraint constraints.txt --editable ".${extra:+[$extra]}" >"$log" 2>&1 &
pip=$!
said=
while sleep 5 && kill -0 "$pip" 2>/dev/null; do
    line=$(tail -n 1 "$log" | cut -c 1-80)
    [ "$line" = "$said" ] || echo "   $(($(date +%s) - began)) s: $line"
    said=$line
done
wait "$pip" || {
    cat "$log" >&2
    exit 1
}
echo "== installed in $(($(date +%s) - began)) s"

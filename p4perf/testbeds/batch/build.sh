#!/bin/sh
# Builds every program that is not built yet, into built/. One that fails is left out; built/KEY.log says why.
cd "$(dirname "$0")" || exit 3
mkdir -p built || exit 3
for level in builds/level-*.txt; do
	[ -e "$level" ] || continue
	xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" sh build-one.sh <"$level" || exit 3
done

#!/bin/sh
# Install those of the given Debian packages that are missing. Asks nothing; needs root or sudo only if one is missing.
set -eu

if ! command -v dpkg-query >/dev/null; then
    echo "This is not a Debian system. If a later step fails, install the equivalents of: $*" >&2
    exit 0
fi

missing=
for package in "$@"; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=absent
    [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "These system packages are missing:$missing" >&2
    echo "Run this as root, or have somebody run: apt-get install$missing" >&2
    exit 1
fi

echo "== system packages, by apt-get:$missing"
# shellcheck disable=SC2086  # both are lists of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 update
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing

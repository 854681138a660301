#!/bin/sh
# Usage: fetch-sshd.sh FOLDER. Unpack the server of OpenSSH into a folder, for the tests of testbed ssh, which start it on
# loopback. Nothing of the system is changed. Where it cannot be had, those tests are skipped. A system that has one, as
# SSHD says or else in its usual place, needs no other.
set -eu

folder=$1
[ ! -x "${SSHD:-/usr/sbin/sshd}" ] && [ ! -x "$folder/usr/sbin/sshd" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"
# What the server needs besides the client and a plain Debian: its library of host access.
if ! apt-get -q -o APT::Sandbox::User=root download openssh-server openssh-sftp-server libwrap0 libnsl2 libtirpc3 >log 2>&1; then
    echo "the server of OpenSSH cannot be fetched, and the tests of testbed ssh are skipped: $(tail -n 1 log)" >&2
    exit 0
fi
for package in *.deb; do
    dpkg-deb -x "$package" unpacked
done
cd "$OLDPWD"
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$work/unpacked" "$folder"

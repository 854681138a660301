#!/bin/sh
# Install the server of OpenSSH, which tests of testbed ssh start on loopback. The system's own service is neither
# started nor enabled. Without root or sudo those tests are skipped.
set -eu

if ! command -v dpkg-query >/dev/null; then
    exit 0
fi
status=$(dpkg-query -W -f='${db:Status-Status}' openssh-server 2>/dev/null) || status=absent
[ "$status" != installed ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=sudo
else
    echo "openssh-server is not installed: the tests of testbed ssh are skipped" >&2
    exit 0
fi

# Maintainer scripts ask this file whether they may start a service.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '$as_root rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod 755 "$policy"
fi
sh "$(dirname "$0")/install-system-packages.sh" openssh-server
for unit in ssh.service ssh.socket; do
    $as_root env DPKG_MAINTSCRIPT_PACKAGE=openssh-server deb-systemd-helper disable "$unit" >/dev/null 2>&1 || true
done

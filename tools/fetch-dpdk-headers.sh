#!/bin/sh
# Fetch two headers of DPDK that Debian's libdpdk-dev leaves out, from the Debian source package of the installed version.
#
# The code that rte_swx_pipeline_codegen() generates includes rte_swx_pipeline_internal.h; target dpdk-swx needs it to
# compile a pipeline. The headers come from where this machine gets its packages: its own apt configuration is read, with
# deb-src in the place of deb, and not changed. They are kept in the cache of p4perf, with a note of version and licence.
# A failure says why and is not fatal: dpdk-swx:interpreter needs no headers.
set -eu

headers="rte_swx_pipeline_internal.h rte_swx_pipeline_spec.h"

# Say why there are no headers, and end well: everything else works without them.
give_up() {
    echo "Headers of DPDK for dpdk-swx were not fetched: $*" >&2
    echo "Target dpdk-swx:interpreter works without them; run sh tools/fetch-dpdk-headers.sh to try again." >&2
    exit 0
}

# Entries of a sources.list (one line each) of Debian's own suites, as deb-src.
one_line_sources() {
    awk -v suites="$suites" '
        $1 == "deb" {
            line = $0
            sub(/#.*/, "", line)
            options = ""
            if (match(line, /\[[^]]*\]/)) {
                options = substr(line, RSTART + 1, RLENGTH - 2)
                line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
                gsub(/arch[-+]?=[^ ]*/, "", options)
                options = "[" options "] "
            }
            n = split(line, part)
            for (i = 4; i <= n; i++)
                if (part[i] == "main" && index(suites, " " part[3] " "))
                    print "deb-src " options part[2], part[3], "main"
        }' "$1"
}

# Paragraphs of a deb822 file (*.sources) of Debian's own suites, as deb-src.
paragraph_sources() {
    awk -v suites="$suites" '
        function finish(    n, i, wanted, found) {
            n = split(field["suites"], wanted)
            found = 0
            for (i = 1; i <= n; i++)
                found += index(suites, " " wanted[i] " ") > 0
            if (found && found == n && (" " field["types"] " ") ~ / deb / && (" " field["components"] " ") ~ / main / &&
                field["enabled"] != "no")
                printf "Types: deb-src\n%s\n", kept
            kept = ""
            split("", field)
        }
        /^[ \t]*$/ { finish(); next }
        /^#/ { next }
        /^[^ \t]/ {
            name = tolower($0)
            sub(/:.*/, "", name)
        }
        {
            value = $0
            if (value ~ /^[^ \t]/)
                sub(/^[^:]*:[ \t]*/, "", value)
            field[name] = field[name] " " value
            gsub(/^[ \t]+|[ \t]+$/, "", field[name])
            if (name != "types" && name != "architectures")
                kept = kept $0 "\n"
        }
        END { finish() }' "$1"
}

command -v dpkg-query >/dev/null || give_up "this is not a Debian system"
version=$(dpkg-query -W -f='${source:Version}' libdpdk-dev 2>/dev/null) || version=
[ -n "$version" ] || give_up "the package libdpdk-dev is not installed"
for tool in apt-get apt-config dpkg-source pkg-config; do
    command -v "$tool" >/dev/null || give_up "there is no $tool (packages apt, dpkg-dev, pkg-config)"
done
upstream=$(pkg-config --modversion libdpdk 2>/dev/null) || give_up "pkg-config does not find libdpdk"

case ${XDG_CACHE_HOME:-} in
/*) cache=$XDG_CACHE_HOME/p4perf ;;
*) cache=$HOME/.cache/p4perf ;;
esac
folder=$cache/dpdk-$upstream
if grep -qsFx "Version: $version" "$folder/NOTE"; then
    complete=yes
    for header in $headers; do [ -s "$folder/$header" ] || complete=no; done
    [ "$complete" = no ] || exit 0
fi
mkdir -p "$cache" || give_up "cannot create $cache"

work=$(mktemp -d "$cache/.dpdk-$upstream.XXXXXX") || give_up "cannot write to $cache"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$work/sources" "$work/lists/partial" "$work/archives/partial" "$work/fetched" "$work/headers"

codename=$(sed -n 's/^VERSION_CODENAME="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' /etc/os-release)
suites=" "
for name in $codename stable oldstable oldoldstable testing sid unstable; do
    suites="$suites$name $name-updates $name-security $name/updates $name-proposed-updates $name-backports "
done
eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
number=0
for file in "$list" "${parts%/}"/*.list "${parts%/}"/*.sources; do
    [ -f "$file" ] || continue
    number=$((number + 1))
    case $file in
    *.sources) paragraph_sources "$file" >"$work/sources/$number.sources" ;;
    *) one_line_sources "$file" >"$work/sources/$number.list" ;;
    esac
done
find "$work/sources" -size 0 -exec rm {} +
[ -n "$(ls "$work/sources")" ] || give_up "the apt configuration of this machine names no Debian suite"

apt() {
    apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources" \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work" -o Dir::Cache::archives="$work/archives" \
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::IndexTargets::deb-src::Contents::DefaultEnabled=0 \
        "$@"
}
last_line() { grep -v '^$' "$work/log" | tail -n 1; }

echo "== headers of DPDK $version, from its Debian source package"
apt update >"$work/log" 2>&1 || give_up "apt-get update: $(last_line)"
(cd "$work/fetched" && apt source --download-only --only-source "dpdk=$version") >"$work/log" 2>&1 ||
    give_up "apt-get source: $(last_line)"
dpkg-source --no-check -x "$work"/fetched/*.dsc "$work/tree" >"$work/log" 2>&1 || give_up "dpkg-source: $(last_line)"
for header in $headers; do
    cp "$work/tree/lib/pipeline/$header" "$work/headers/$header" || give_up "the source package has no $header"
done
{
    echo "Version: $version"
    echo "From lib/pipeline of the Debian source package dpdk. Licence of both files: $(sed -n \
        's/.*SPDX-License-Identifier: *\([^ ]*\).*/\1/p' "$work"/headers/*.h | sort -u | tr '\n' ' ')"
    sed -n 's/^ \* \(Copyright.*\)/\1/p' "$work"/headers/*.h | sort -u
} >"$work/headers/NOTE"
chmod 755 "$work/headers"
rm -rf "$folder"
mv "$work/headers" "$folder" || give_up "cannot write $folder"
echo "   kept in $folder"

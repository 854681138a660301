# Puts files into a new folder. Arguments: FOLDER FINAL SHA256, then NAME and SIZE of every file.
# Input: the bytes of all of them one after another, in base64. The folder becomes FINAL in the end, if that is not empty.
folder=$1 final=$2 sum=$3
shift 3
[ -z "$final" ] || [ ! -d "$final" ] || exit 0
fail() {
	cd /
	rm -rf -- "$folder"
	printf '\n%s failed 1\n' "$0" >&2
	exit 1
}
mkdir -- "$folder" && cd -- "$folder" && base64 -d >.all || fail
[ "$(sha256sum <.all)" = "$sum  -" ] || { echo 'not everything arrived' >&2; fail; }
offset=1
while [ $# -gt 0 ]; do
	tail -c "+$offset" .all 2>/dev/null | head -c "$2" >"$1" && [ "$(wc -c <"$1")" -eq "$2" ] || fail
	offset=$((offset + $2))
	shift 2
done
rm .all || fail
[ -z "$final" ] || mv -T -- "$folder" "$final" 2>/dev/null || [ -d "$final" ] || fail

# Ends a build. Arguments: FOLDER FINAL PRODUCT SUM. Input: its log. Exit code 3 if the product is not there.
# With an empty PRODUCT the build has failed, and FINAL is where it is kept for people to read.
cat >"$1/build.log" || { rm -rf -- "$1"; exit 1; }
if [ -z "$3" ]; then
	rm -rf -- "$2"
	mv -T -- "$1" "$2" 2>/dev/null || rm -rf -- "$1"
	exit 0
elif [ ! -e "$1/$3" ]; then
	rm -rf -- "$1"
	exit 3
fi
sum=$(sha256sum <"$1/$3") && echo "${sum%% *}" >"$1/$4" && sync -- "$1/$3" "$1/$4" || { rm -rf -- "$1"; exit 1; }
whole() {
	there=$(sha256sum <"$2/$3") && [ "${there%% *}" = "$(cat "$2/$4")" ]
}
# Somebody else may have finished the same build meanwhile; then this one is not needed. A damaged one makes room.
mv -T -- "$1" "$2" 2>/dev/null || whole "$@" 2>/dev/null || { rm -rf -- "$2"; mv -T -- "$1" "$2" 2>/dev/null; }
rm -rf -- "$1"
whole "$@"

# Ends a build. Arguments: FOLDER FINAL PRODUCT. Input: its log. Exit code 3 if the product is not there.
# With an empty PRODUCT the build has failed, and FINAL is where it is kept for people to read.
cat >"$1/build.log" || { rm -rf -- "$1"; exit 1; }
if [ -z "$3" ]; then
	rm -rf -- "$2"
elif [ ! -e "$1/$3" ]; then
	rm -rf -- "$1"
	exit 3
fi
# Somebody else may have finished the same build meanwhile; then this one is not needed.
mv -T -- "$1" "$2" 2>/dev/null || { rm -rf -- "$1"; [ -e "$2/$3" ]; }

#!/bin/sh
# sh build-one.sh KEY builds sources/KEY by builds/KEY.sh, in a folder beside the final one.
key=$1
case $key in
'' | *[!0-9a-f]*) exit 2 ;;
esac
[ -d "built/$key" ] && exit 0
rm -rf "built/.$key" "built/$key.log"
mkdir "built/.$key" || exit 3
if [ -d "sources/$key" ]; then
	cp -R "sources/$key/." "built/.$key/" || exit 3
fi
script=$(pwd)/builds/$key.sh
if (cd "built/.$key" && exec sh "$script") >"built/$key.log" 2>&1 </dev/null; then
	mv "built/.$key" "built/$key" || exit 3
else
	rm -rf "built/.$key"
fi
exit 0

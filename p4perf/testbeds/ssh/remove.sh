# Removes a folder.
rm -rf -- "$1"

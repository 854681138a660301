# Tells whether a file is there.
[ -e "$1" ]

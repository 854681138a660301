# Tells whether a build is there and its product as it was made. Arguments: FOLDER PRODUCT SUM.
sum=$(sha256sum <"$1/$2") && [ "${sum%% *}" = "$(cat "$1/$3")" ]

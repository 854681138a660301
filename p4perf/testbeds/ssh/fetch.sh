# Prints a file of a folder in base64. Arguments: FOLDER NAME.
base64 <"$1/$2"

# Says of objects what they are ($3 is --batch-check), and what is in them ($3 is --batch).
# $1 the project, $2 the folder that they were checked in; standard input: their names, one a line.
set -eu
cd "$2"
git --git-dir=clean cat-file "$3"

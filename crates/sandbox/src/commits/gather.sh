# Packs the commits of a session that the project lacks. It reads what the session wrote, so its pack is looked at by check.sh,
# which reads nothing of the session's.
# $1 the layer, $2 the project, $3 the folder to work in; standard input: NEW or ^OLD, one a line.
set -eu
cd "$3"
rm -rf -- gathered gathered.pack clean
mkdir -p gathered/objects/info gathered/refs
echo 'ref: refs/heads/none' >gathered/HEAD
printf '%s\n' "$1/.git/objects" "$2/.git/objects" >gathered/objects/info/alternates
if [ -f "$2/.git/shallow" ]; then cp -- "$2/.git/shallow" gathered/shallow; fi
exec git --git-dir=gathered pack-objects --revs --threads=1 --stdout -q >gathered.pack

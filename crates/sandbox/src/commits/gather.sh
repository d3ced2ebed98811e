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
# What it borrows objects from would be the session's word.
if [ -e "$1/.git/objects/info/alternates" ]; then
    echo 'its store of objects names others' >&2
    exit 1
fi
# A pipe would be waited for; the layer's marks of what is gone are devices.
if [ -n "$(find "$1/.git/objects" ! -type f ! -type d ! -type c 2>/dev/null | head -n 1)" ]; then
    echo 'its store of objects holds what is no plain file' >&2
    exit 1
fi
exec git --git-dir=gathered pack-objects --revs --threads=1 --stdout -q >gathered.pack

# Checks a pack against the project's own objects and nothing else, and says of each tip what it is.
# $1 the project, $2 the folder to work in, then OLD NEW for each tip (- where there is no old one); standard input: what the
# project's references name, each as ^OBJECT.
set -eu
cd "$2"
rm -rf -- clean
mkdir -p clean/objects/info clean/objects/pack clean/refs
echo 'ref: refs/heads/none' >clean/HEAD
printf '%s\n' "$1/.git/objects" >clean/objects/info/alternates
if [ -f "$1/.git/shallow" ]; then cp -- "$1/.git/shallow" clean/shallow; fi
cat >theirs
shift 2
own() { git --git-dir=clean "$@"; }
# One without objects is 32 bytes long.
if [ "$(wc -c <gathered.pack)" -gt 32 ]; then
    own index-pack --strict --fsck-objects --threads=1 --stdin <gathered.pack >pack.name
fi
while [ $# -gt 0 ]; do
    old=$1 new=$2
    shift 2
    echo tip
    if [ "$(own cat-file -t "$new")" != commit ]; then continue; fi
    { echo "$new"; cat theirs; } >wanted
    # Every object of it must be there, down to the last file.
    own rev-list --objects --quiet --stdin <wanted
    echo "count $(own rev-list --count --stdin <wanted)"
    if [ "$old" = - ] || own merge-base --is-ancestor "$old" "$new"; then echo follows; fi
    own log --stdin --max-count=1000 -c --raw --no-abbrev --no-renames --no-color --no-mailmap --format='>%H%x00%an%x00%s' <wanted >log
    head -c 1000000 log
    # A line that was cut ends here.
    echo
    if [ "$(wc -c <log)" -gt 1000000 ]; then echo cut; fi
done
echo end

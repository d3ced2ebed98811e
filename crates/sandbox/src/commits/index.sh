# Makes of the project's index the one that fits another commit, keeping what was staged besides; and says which paths differ, and how.
# $1 the project, $2 the folder to work in, $3 and $4 the commits (- for none), $5 whether the index is wanted.
set -eu
cd "$2"
if [ ! -d clean ]; then
    mkdir -p clean/objects/info clean/refs
    echo 'ref: refs/heads/none' >clean/HEAD
    printf '%s\n' "$1/.git/objects" >clean/objects/info/alternates
fi
# The tree without files.
none=4b825dc642cb6eb9a060e54bf8d69288fbee4904
from=$3 to=$4
if [ "$from" = - ]; then from=$none; fi
if [ "$to" = - ]; then to=$none; fi
own() { git --git-dir=clean "$@"; }
rm -f -- clean/index clean/base clean/paths clean/next clean/*.lock
# What a submodule has committed stays in the session.
if own diff-tree -r --raw "$from" "$to" | grep -q '^:[0-7]* 160000 '; then
    echo 'they name a commit of a submodule, which stays in the session' >&2
    exit 1
fi
if [ "$5" = index ]; then
    if [ -f "$1/.git/index" ]; then
        cp -- "$1/.git/index" clean/base
        cp -- clean/base clean/next
        # Of one that is split the most lies beside it (core.splitIndex). What is made of it is whole.
        for shared in "$1"/.git/sharedindex.*; do
            if [ -f "$shared" ]; then cp -- "$shared" clean/; fi
        done
    fi
    # One that does not fit is none.
    GIT_INDEX_FILE=clean/next own -c core.splitIndex=false read-tree -i -m "$from" "$to"
    mv -- clean/next clean/index
fi
own diff-tree -r -z --raw --no-abbrev --no-renames "$from" "$to" >clean/paths

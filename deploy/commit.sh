#!/bin/sh
# Tell which commit this tree is, or the seconds of its time: commit.sh hash|time.
# git knows, or the archive that git has made of it and has filled in below, or the source
# distribution. Else the commit is "unknown", and the time is now; git says why, if there is a .git.
set -eu
cd "$(dirname "$0")/.."

# shellcheck disable=SC2016 # it is not for the shell
found='$Format:%H %ct$'
case $found in
*%*)
    found=
    [ ! -e .git ] || found=$(git log -1 --format='%H %ct' || true)
    ;;
esac
if [ ! "$found" ] && [ -e api_exporter/_build.py ]; then
    found=$(sed -n 's/^COMMIT = "\(.*\)"/\1/p' api_exporter/_build.py)
    found="$found $(date +%s --date="$(sed -n 's/^BUILT = "\(.*\)"/\1/p' api_exporter/_build.py)")"
fi
[ "$found" ] || found="unknown $(date +%s)"

case ${1:-} in
hash) printf '%.12s\n' "${found% *}" ;;
time) echo "${found#* }" ;;
*) echo "usage: commit.sh hash|time" >&2 && exit 2 ;;
esac

#!/bin/sh
# Write the checksums of all files of a directory, and sign them.
set -eu
umask 022

usage="usage: seal.sh DIRECTORY
SIGN names the key of gpg's that signs; without it the checksums are unsigned, which is said."

case $# in 1) ;; *) echo "$usage" >&2; exit 2 ;; esac
cd "$1"
rm -f SHA256SUMS SHA256SUMS.asc
sums=$(find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum)
echo "$sums" >SHA256SUMS
if [ "${SIGN:-}" ]; then
    gpg --batch --quiet --local-user "$SIGN" --armor --detach-sign SHA256SUMS
else
    echo "seal.sh: not signed: SIGN names no key" >&2
fi

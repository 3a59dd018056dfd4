#!/bin/sh
# Write the checksums of all files of a directory, and sign them.
set -eu
umask 022

usage="usage: seal.sh DIRECTORY | --key
  --key  only look whether others could check what SIGN signs
SIGN names the key of gpg's that signs; without it the checksums are unsigned, which is said.
Others need the public key, deploy/release/key.asc, and its fingerprint, in docs/install/README.md."

case $# in 1) ;; *) echo "$usage" >&2; exit 2 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
fail() {
    echo "seal.sh: $1" >&2
    exit 1
}

fingerprint() { gpg --batch --with-colons "$@" 2>/dev/null | sed -n '/^fpr/{s/^fpr:*\([^:]*\):$/\1/p;q}'; }
if [ "${SIGN:-}" ]; then
    own=$(fingerprint --list-secret-keys "$SIGN")
    [ "$own" ] || fail "SIGN=$SIGN: gpg has no such secret key"
    [ "$(fingerprint --show-keys "$here/key.asc")" = "$own" ] \
        || fail "SIGN=$SIGN: it is not the key of deploy/release/key.asc: gpg --armor --export $own"
    grep -q "$own" "$here/../../docs/install/README.md" \
        || fail "SIGN=$SIGN: its fingerprint $own is not in docs/install/README.md"
fi
[ "$1" != --key ] || exit 0

cd "$1"
rm -f SHA256SUMS SHA256SUMS.asc key.asc UNSIGNED.txt
sums=$(find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum)
echo "$sums" >SHA256SUMS
if [ "${SIGN:-}" ]; then
    gpg --batch --quiet --local-user "$SIGN" --armor --detach-sign SHA256SUMS
    cp "$here/key.asc" .
else
    echo "This release is unsigned: SHA256SUMS tells whether files are whole, not whose they are." \
        | tee UNSIGNED.txt >&2
fi

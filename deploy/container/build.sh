#!/bin/sh
# Build an image whose labels tell version, revision and time, the same bytes for the same commit:
#   build.sh --tag NAME [OPTION …]
# Options go to the engine, such as --platform linux/arm64. ENGINE is podman or buildah. BASE and
# BUILDER are what the Containerfile says they are, unless they are set. With RELEASE set, a base
# without its digest is refused.
set -eu
cd "$(dirname "$0")/../.."

if [ $# -lt 2 ] || [ "$1" != --tag ]; then
    echo "usage: build.sh --tag NAME [OPTION ...]" >&2
    exit 2
fi
name=$2
shift 2
engine=${ENGINE:-podman}
file=deploy/container/Containerfile
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(deploy/commit.sh time)}
export SOURCE_DATE_EPOCH
created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
commit=${SOURCE_COMMIT:-$(deploy/commit.sh hash)}
version=$(sed -n 's/.*Version("api_exporter", \(.*\))$/\1/p' api_exporter/_version.py | sed 's/, dev=/.dev/; s/, /./g')

base=${BASE:-$(sed -n 's/^ARG BASE=//p' $file)}
case $base in
*@sha256:*) ;;
*)
    echo "build.sh: the base $base has no digest: BASE=NAME@sha256:... gives it one" >&2
    [ -z "${RELEASE:-}" ] || exit 1
    ;;
esac
set -- --build-arg "BASE=$base" --build-arg "BUILDER=${BUILDER:-$base}" \
    --build-arg "SOURCE_COMMIT=$commit" \
    --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" "$@"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# podman's own format has no health checks.
"$engine" build --format docker --file "$file" --iidfile "$work/built" \
    --layers=false --timestamp "$SOURCE_DATE_EPOCH" --identity-label=false \
    --label "org.opencontainers.image.version=$version" \
    --label "org.opencontainers.image.revision=$commit" \
    --label "org.opencontainers.image.created=$created" \
    "$@" .
built=$(cat "$work/built")
"$engine" push --quiet "$built" "dir:$work/image"
python3 deploy/container/settle.py "$work/image"
settled=$("$engine" pull --quiet "dir:$work/image")
"$engine" tag "$settled" "$name"
"$engine" rmi "$built" >/dev/null
echo "$name is ${settled#sha256:}"

#!/bin/sh
# Build an image whose labels tell version, revision and time, the same bytes for the same commit:
#   build.sh image|static [OPTION …]
# Options go to the engine, such as --tag NAME or --platform linux/arm64. ENGINE is podman or
# buildah. BASE and BUILDER are what the Containerfile says they are, unless they are set. With
# RELEASE set, a base without its digest is refused. `static` needs `make directory` before.
set -eu
cd "$(dirname "$0")/../.."

kind=$1
shift
engine=${ENGINE:-podman}
file=deploy/container/Containerfile
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
commit=$(git rev-parse --short=12 HEAD)
version=$(sed -n 's/.*Version("api_exporter", \([0-9]*\), \([0-9]*\), \([0-9]*\).*/\1.\2.\3/p' \
    api_exporter/_version.py)

case $kind in
image)
    context=.
    base=${BASE:-$(sed -n 's/^ARG BASE=//p' $file)}
    case $base in
    *@sha256:*) ;;
    *)
        echo "build.sh: the base $base has no digest; BASE=NAME@sha256:… names one" >&2
        [ -z "${RELEASE:-}" ] || exit 1
        ;;
    esac
    set -- --build-arg "BASE=$base" --build-arg "BUILDER=${BUILDER:-$base}" \
        --build-arg "SOURCE_COMMIT=$commit" \
        --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" "$@"
    ;;
static)
    context=build/static file=$file.static
    deploy/container/static-root.sh build/directory/api-exporter $context
    ;;
*)
    echo "usage: build.sh image|static [OPTION …]" >&2
    exit 2
    ;;
esac

# podman's own format has no health checks.
exec "$engine" build --format docker --file "$file" \
    --layers=false --timestamp "$SOURCE_DATE_EPOCH" --identity-label=false \
    --label "org.opencontainers.image.version=$version" \
    --label "org.opencontainers.image.revision=$commit" \
    --label "org.opencontainers.image.created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)" \
    "$@" "$context"

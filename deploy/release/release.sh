#!/bin/sh
# Gather all that is released in one directory, with an SBOM, checksums and a signature.
# Files that cannot be made here are named at once, and again at the end.
set -eu
umask 022

usage="usage: release.sh [OUT]
  OUT  the directory to fill (default: dist/release); what was in it goes
It needs what \`make executable\` has built. SIGN names the key of gpg's that signs the
checksums, ENGINE what builds images (default: buildah). With COMPLETE=yes it fails where anything but the signature is left out."

case ${1:-} in -*) echo "$usage" >&2; exit 2 ;; esac
cd "$(dirname "$0")/../.."
out=${1:-dist/release}
architecture=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(deploy/commit.sh time)}"

missing=
without() {
    echo "release.sh: not made: $1: $2" >&2
    missing="$missing
  $1: $2"
}
has() { command -v "$1" >/dev/null; }

program=build/directory/api-exporter
[ -x "$program/api-exporter" ] || { echo "release.sh: make executable comes first" >&2; exit 1; }
version=$("$program/api-exporter" --version | cut -d ' ' -f 2)
[ ! -e .git ] || [ -z "$(git status --porcelain)" ] || echo "release.sh: the tree has changes that no tag holds" >&2
[ ! "${SIGN:-}" ] || deploy/release/seal.sh --key
rm -rf "$out" build/release
mkdir -p "$out"

# The same archive, but that it is the same bytes each time.
settled() {
    rm -rf build/release/settled
    mkdir build/release/settled
    tar --extract --gzip --file "$1" --directory build/release/settled
    chmod -R u=rwX,go=rX build/release/settled
    tar --create --sort=name --format=posix --pax-option=delete=atime,delete=ctime \
        --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --directory build/release/settled "$(ls build/release/settled)" | gzip -9n >"$out/${1##*/}"
}

# Python's own forms. The wheel is built from the source distribution.
"${PYTHON:-python3}" -m venv build/release
pip="build/release/bin/pip --quiet --disable-pip-version-check"
$pip install --require-hashes --requirement deploy/lock/build.txt --requirement deploy/lock/release.txt
build="build/release/bin/python -m build --no-isolation"
$build --sdist --outdir build/release/sdist . >build/release/build.log
settled build/release/sdist/*.tar.gz
$build --wheel --outdir "$out" build/release/settled/* >>build/release/build.log
wheel=$(echo "$out"/*.whl)

# The executables, for machines such as this.
cp "dist/api-exporter-linux-$architecture" "dist/api-exporter-$version-linux-$architecture.tar.gz" "$out"

if has dpkg-deb && has objdump; then
    deploy/debian/build.sh "$program" "$version" "$out" >/dev/null
else
    without "Debian package" "dpkg-deb or objdump is not here"
fi

if [ ! -d deploy/helm/api-exporter ]; then
    without "chart" "the tree has none"
elif has helm; then
    helm package --destination build/release/chart deploy/helm/api-exporter >/dev/null
    settled build/release/chart/*.tgz
else
    without "chart" "helm is not here"
fi

# Dashboards for grafana.com, which ask for their data source.
dashboards=api-exporter-$version-dashboards
build/release/bin/python deploy/release/dashboards.py "build/release/copies/$dashboards"
tar --create --gzip --directory build/release/copies --file "build/release/$dashboards.tar.gz" "$dashboards"
settled "build/release/$dashboards.tar.gz"

engine=${ENGINE:-buildah}
name=api-exporter-$version-image-linux-$architecture
log=build/release/image.log
if ! has "$engine"; then
    without image "$engine is not here"
elif ENGINE=$engine RELEASE=yes deploy/container/build.sh --tag "localhost/$name" >"$log" 2>&1 \
    && "$engine" push --quiet "localhost/$name" "docker-archive:$out/$name.tar:localhost/api-exporter:$version" >>"$log" 2>&1; then
    "$engine" rmi "localhost/$name" >/dev/null
else
    without image "$log ends with: $(tail -n 1 "$log")"
fi

# What the program is made of: an environment with nothing in it but that.
"${PYTHON:-python3}" -m venv --without-pip build/release/run
into="$pip --python build/release/run/bin/python install"
$into --require-hashes --requirement deploy/lock/run.txt --report build/release/report.json
$into --no-deps "$wheel"
cat >build/release/pyproject.toml <<END
[project]
name = "api-exporter"
version = "$version"
license = "MIT"
END
build/release/bin/cyclonedx-py environment --pyproject build/release/pyproject.toml \
    --output-reproducible --output-file build/release/bom.json build/release/run/bin/python
build/executable/bin/python deploy/release/sbom.py \
    "$program" build/release/report.json "$wheel" <build/release/bom.json \
    >"$out/api-exporter-$version.cdx.json"

deploy/release/seal.sh "$out"
(cd "$out" && du --bytes -- *)
[ ! "$missing" ] || echo "not made:$missing"
[ "${SIGN:-}" ] || echo "unsigned: SIGN names no key"
[ ! "$missing" ] || [ "${COMPLETE:-}" != yes ]

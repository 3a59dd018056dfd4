#!/bin/sh
# Make a Debian source package of the source distribution: source.sh SDIST OUT.
# It builds with `dpkg-buildpackage` against the libraries of Debian 13.
set -eu
umask 022
[ $# = 2 ] || { echo "usage: source.sh api_exporter-VERSION.tar.gz OUT" >&2; exit 2; }
sdist=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
cd "$2"

found=$(basename "$sdist" .tar.gz)
found=${found#api_exporter-}
version=$("$here/version.sh" "$found")
tree=api-exporter-$version
rm -rf "$tree"
mkdir "$tree"
tar --extract --file "$sdist" --directory "$tree" --strip-components 1
cp "$sdist" "api-exporter_$version.orig.tar.gz"
cp -R "$tree/deploy/debian/source" "$tree/debian"
cp "$tree/deploy/debian/copyright" "$tree/debian/copyright"
cat >"$tree/debian/changelog" <<END
api-exporter ($version-1) unstable; urgency=medium

  * Release $found: see CHANGELOG.md.

 -- $(sed -n 's/^Maintainer: //p' "$tree/debian/control")  $(LC_ALL=C date --utc --rfc-email --date="@$(sh "$tree/deploy/commit.sh" time)")
END
dpkg-source --build "$tree"

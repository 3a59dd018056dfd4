#!/bin/sh
# Make a Debian package of the directory that `make executable` leaves.
set -eu
umask 022

usage="usage: build.sh PROGRAM VERSION OUT
  PROGRAM  the directory with the program and what it needs
  VERSION  of the program, such as 1.2.3 or 1.2.3rc1
  OUT      the directory for api-exporter_VERSION_ARCHITECTURE.deb
SOURCE_DATE_EPOCH is respected. COMPRESSION names dpkg-deb's (default: xz)."

[ $# = 3 ] || { echo "$usage" >&2; exit 2; }
program=$1
out=$3
deploy=$(cd "$(dirname "$0")/.." && pwd)
version=$("$deploy/debian/version.sh" "$2")-1
[ -x "$program/api-exporter" ] || { echo "build.sh: there is no $program/api-exporter" >&2; exit 1; }

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$tree"
docs=$tree/usr/share/doc/api-exporter

# The program, with its times: Twisted goes by them. What is loaded and never run itself need not look as if it could.
mkdir -p "$tree/usr/lib" "$tree/usr/bin"
cp -a "$program" "$tree/usr/lib/api-exporter"
rm -f "$tree/usr/lib/api-exporter/LICENSE"
find "$tree/usr/lib/api-exporter" -type f -exec chmod 644 {} +
chmod 755 "$tree/usr/lib/api-exporter/api-exporter"
ln -s ../lib/api-exporter/api-exporter "$tree/usr/bin/api-exporter"

# The units, the settings and the documents.
"$deploy/package-files.sh" "$tree" "$program/_internal/api_exporter/doc"

# What Debian asks for.
install -D -m 644 "$deploy/debian/copyright" "$docs/copyright"
if [ -e "$deploy/../CHANGELOG.md" ]; then
    gzip -9n <"$deploy/../CHANGELOG.md" >"$docs/changelog.gz"
fi
gzip -9n >"$docs/changelog.Debian.gz" <<END
api-exporter ($version) stable; urgency=medium

  * Release $2: see changelog.gz.

 -- $(sed -n 's/^Maintainer: //p' "$deploy/debian/control")  $(LC_ALL=C date --utc --rfc-email --date="@${SOURCE_DATE_EPOCH:-$(date +%s)}")
END
install -D -m 644 "$deploy/debian/lintian-overrides" "$tree/usr/share/lintian/overrides/api-exporter"

# A file that is there twice becomes a link to the first.
last=
find "$tree/usr" -type f -size +0 -exec sha256sum {} + | sort | while read -r sum file; do
    if [ "$sum" = "$last" ]; then ln -srf "$first" "$file"; else last=$sum first=$file; fi
done

# What dpkg reads. The symbols that its parts need decide the version of libc. The size
# is that of the files: what directories have differs between file systems.
install -d "$tree/DEBIAN"
architecture=$(dpkg --print-architecture)
size=$(find "$tree" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
libc=$(find "$program" -type f -exec objdump -T {} + 2>/dev/null \
    | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort --unique --version-sort | tail -n 1)
sed -e "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/" \
    -e "s/@LIBC@/libc6${libc:+ (>= $libc)}/" \
    -e "s/@SIZE@/$size/" \
    "$deploy/debian/control" >"$tree/DEBIAN/control"
install -m 755 -t "$tree/DEBIAN" "$deploy/debian/postinst" "$deploy/debian/prerm" "$deploy/debian/postrm"
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"

mkdir -p "$out"
dpkg-deb --root-owner-group -Z"${COMPRESSION:-xz}" --build "$tree" "$out/api-exporter_${version}_$architecture.deb" >/dev/null
echo "$out/api-exporter_${version}_$architecture.deb"

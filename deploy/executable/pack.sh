#!/bin/sh
# Make the directory that PyInstaller built ready for its users, and an archive of it:
#   pack.sh DIRECTORY INTO
# SOURCE_DATE_EPOCH is the time that all files get, so that the archive is always the same.
set -eu

directory=$1 into=$2
source=$(dirname "$0")/../..

cp "$source/LICENSE" "$directory"
chmod -R u=rwX,go=rX "$directory"

# Twisted keeps a list of what it finds in its plugins, and would write it where it may not:
# make it once, and make it younger than they are.
plugins=$directory/_internal/twisted/plugins
find "$directory" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
touch --date=@315532800 "$plugins"/*.py
LISTEN_ADDRESS=tcp6:none "$directory/api-exporter" --demo >/dev/null 2>&1 || true
chmod 644 "$plugins/dropin.cache"
touch --date="@$SOURCE_DATE_EPOCH" "$plugins/dropin.cache" "$plugins"

version=$("$directory/api-exporter" --version | cut -d' ' -f2)
name=api-exporter-$version-linux-$ARCH
tar --create --sort=name --format=gnu --owner=0 --group=0 --numeric-owner \
    --directory "$directory" --transform "s,^\.,$name," . | gzip -9n >"$into/$name.tar.gz"
echo "$into/$name.tar.gz"

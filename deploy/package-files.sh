#!/bin/sh
# Install what the packages of all distributions share: units, settings, examples, documents, manual.
set -eu
umask 022

[ $# = 2 ] || { echo "usage: package-files.sh TREE DOC
  TREE  the root of the package's files
  DOC   the built directory api_exporter/doc" >&2; exit 2; }
tree=$1
deploy=$(cd "$(dirname "$0")" && pwd)
units=$tree/usr/lib/systemd/system
share=$tree/usr/share/api-exporter
docs=$tree/usr/share/doc/api-exporter

# The units: those of install.sh, but for where the program is.
mkdir -p "$units"
sed -e '/^# An upgrade of the system/d; /^ExecStartPre=/d' \
    -e 's|^ExecStart=.* api-exporter |ExecStart=/usr/bin/api-exporter |' \
    -e 's|^Documentation=.*|Documentation=man:api-exporter(1) file:/usr/share/doc/api-exporter/troubleshooting.md|' \
    "$deploy/systemd/api-exporter.service" >"$units/api-exporter.service"
install -m 644 -t "$units" "$deploy/systemd/api-exporter.socket"
install -D -m 644 -t "$units/api-exporter.service.d" \
    "$deploy/systemd/api-exporter.service.d/hardened.conf"
install -D -m 644 "$deploy/systemd/sysusers.conf" "$tree/usr/lib/sysusers.d/api-exporter.conf"

# The settings may come to hold a token. postinst writes them from this template.
install -d -m 750 "$tree/etc/api-exporter"

# What an operator copies from.
install -D -m 644 -t "$share" "$deploy/debian/config" \
    "$deploy/systemd/api-exporter.service.d/token.conf" \
    "$deploy/systemd/api-exporter.service.d/unix-socket.conf"
# Without those that end in _test.yml.
install -D -m 644 -t "$share/prometheus" "$deploy"/prometheus/*[!t].yml
install -D -m 644 -t "$share/grafana" "$deploy"/grafana/dashboards/*.json
install -D -m 755 -t "$docs/examples" "$deploy/nftables/api-exporter.nft" "$deploy/iptables/api-exporter.sh"
install -m 644 "$deploy/logrotate/api-exporter" "$docs/examples/logrotate"
install -D -m 644 -t "$docs/examples/monitoring" "$deploy"/monitoring/*.*

# What an operator reads.
install -D -m 644 -t "$docs" "$2"/*
install -d "$tree/usr/share/man/man1"
gzip -9n <"$deploy/debian/api-exporter.1" >"$tree/usr/share/man/man1/api-exporter.1.gz"

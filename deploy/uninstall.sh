#!/bin/sh
# Remove what install.sh has installed. The user stays: files may still belong to it.
set -eu

usage="usage: uninstall.sh [--dry-run] [--root DIR] [--purge]
  --dry-run   print what would be done
  --root DIR  remove below DIR, for images and tests
  --purge     remove the settings and the token, too"

root=
dry_run=
purge=
while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=yes ;;
        --root) root=${2:?"$usage"} && shift ;;
        --purge) purge=yes ;;
        --help) echo "$usage" && exit ;;
        *) echo "$usage" >&2 && exit 2 ;;
    esac
    shift
done

run() {
    if [ "$dry_run" ]; then echo "$*"; else "$@"; fi
}

if [ "$(id -u)" != 0 ] && [ ! "$dry_run" ]; then
    echo "uninstall.sh: run it as root" >&2
    exit 1
fi

units=$root/etc/systemd/system
if [ ! "$root" ] && [ -d /run/systemd/system ]; then
    for unit in api-exporter.socket api-exporter.service; do
        [ ! -e "$units/$unit" ] || run systemctl disable --now "$unit"
    done
fi
run rm -rf "$units/api-exporter.service" "$units/api-exporter.socket" \
    "$units/api-exporter.service.d" "$root/etc/sysusers.d/api-exporter.conf" \
    "$root/opt/api-exporter"
[ ! "$purge" ] || run rm -rf "$root/etc/api-exporter"
if [ ! "$root" ] && [ -d /run/systemd/system ]; then
    run systemctl daemon-reload
fi

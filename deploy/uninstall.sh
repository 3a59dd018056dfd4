#!/bin/sh
# Remove what install.sh has installed.
set -eu

usage="usage: uninstall.sh [--dry-run] [--root DIR] [--purge]
  --dry-run   print the commands, change nothing
  --root DIR  remove below DIR, for images and tests
  --purge     also remove the settings, the token, the files of the service and its user"

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
    echo "uninstall.sh: run this script as root" >&2
    exit 1
fi

[ ! "$root" ] || root=$(realpath -m "$root")
units=$root/etc/systemd/system
dropins=$units/api-exporter.service.d
running=
if [ ! "$root" ] && [ -d /run/systemd/system ]; then running=yes; fi
for unit in api-exporter.socket api-exporter.service; do
    [ ! -e "$units/$unit" ] \
        || run systemctl ${root:+"--root=$root"} --quiet ${running:+--now} disable "$unit"
done
run rm -rf "$units/api-exporter.service" "$units/api-exporter.socket" \
    "$dropins/hardened.conf" "$dropins/token.conf" "$root/etc/sysusers.d/api-exporter.conf" \
    "$root/opt/api-exporter" "$root"/opt/api-exporter.env-*
# What the administrator has put beside them stays, as the settings do.
if [ -d "$dropins" ]; then
    run rmdir --ignore-fail-on-non-empty "$dropins"
fi
[ ! "$running" ] || run systemctl daemon-reload
[ "$purge" ] || exit 0

# Files elsewhere that belong to the user keep its number.
run rm -rf "$root/etc/api-exporter" "$dropins" "$root/var/lib/api-exporter" "$root/var/log/api-exporter"
for kind in user group; do
    case $kind in user) list=passwd ;; group) list=group ;; esac
    ! grep -qs '^api-exporter:' "$root/etc/$list" \
        || run "${kind}del" ${root:+"--prefix=$root"} api-exporter
done

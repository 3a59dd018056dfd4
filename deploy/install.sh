#!/bin/sh
# Install api-exporter as a systemd service, or upgrade it: running it again is harmless.
set -eu
umask 022

usage="usage: install.sh [--dry-run] [--root DIR] [--source SOURCE]
  --dry-run        print what would be done
  --root DIR       install below DIR, for images and tests
  --source SOURCE  what pip installs: a wheel, a directory, a name (default: this tree)
PYTHON names the interpreter to use, 3.11 or newer (default: python3)."

deploy=$(cd "$(dirname "$0")" && pwd)
source=$deploy/..
root=
dry_run=
while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=yes ;;
        --root) root=${2:?"$usage"} && shift ;;
        --source) source=${2:?"$usage"} && shift ;;
        --help) echo "$usage" && exit ;;
        *) echo "$usage" >&2 && exit 2 ;;
    esac
    shift
done

run() {
    if [ "$dry_run" ]; then echo "$*"; else "$@"; fi
}

if [ "$(id -u)" != 0 ] && [ ! "$dry_run" ]; then
    echo "install.sh: run it as root" >&2
    exit 1
fi

# The user, and its group by number: a scratch root's group has no name outside.
run install -D -m 644 "$deploy/systemd/sysusers.conf" "$root/etc/sysusers.d/api-exporter.conf"
run systemd-sysusers ${root:+"--root=$root"} api-exporter.conf
group=$(sed -n 's/^api-exporter:[^:]*:\([0-9]*\):.*/\1/p' "$root/etc/group" 2>/dev/null || true)
group=${group:-api-exporter}

# The settings: never overwritten, but their owner and mode are put right.
settings=$root/etc/api-exporter
run install -d -m 750 -o root -g "$group" "$settings"
[ -e "$settings/config" ] || run cp "$deploy/api-exporter.env.example" "$settings/config"
run chown "root:$group" "$settings/config"
run chmod 640 "$settings/config"

# The program.
venv=$root/opt/api-exporter
[ -x "$venv/bin/python" ] || run "${PYTHON:-python3}" -m venv "$venv"
# A tree is built in a copy: nothing of root's stays in it, and nothing old gets in from its build/.
if [ -d "$source" ] && [ ! "$dry_run" ]; then
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    (cd "$source" && tar -cf - --exclude=./.venv --exclude=./build --exclude='./*.egg-info' .) | tar -xf - -C "$copy"
    source=$copy
fi
run "$venv/bin/python" -I -m pip install --quiet --disable-pip-version-check --upgrade "$source"

# The units. The token comes from its own file where there is one.
units=$root/etc/systemd/system
dropins=$units/api-exporter.service.d
run install -D -m 644 -t "$units" "$deploy/systemd/api-exporter.service" \
    "$deploy/systemd/api-exporter.socket"
run install -D -m 644 -t "$dropins" "$deploy/systemd/api-exporter.service.d/hardened.conf"
if [ -e "$settings/token" ]; then
    run chown root:root "$settings/token"
    run chmod 600 "$settings/token"
    run install -m 644 -t "$dropins" "$deploy/systemd/api-exporter.service.d/token.conf"
else
    run rm -f "$dropins/token.conf"
fi
if [ ! "$root" ] && [ -d /run/systemd/system ]; then
    run systemctl daemon-reload
    run systemctl try-restart api-exporter.service
fi

# From / because twistd looks for plugins in the current directory, too.
cd /
run "$venv/bin/twistd" api-exporter --version

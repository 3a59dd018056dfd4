#!/bin/sh
# Install api-exporter as a systemd service, or upgrade it. You can run this script again.
set -eu
umask 022

usage="usage: install.sh [--dry-run] [--root DIR] [--source SOURCE]
  --dry-run        print the commands, change nothing
  --root DIR       install below DIR, for images and tests
  --source SOURCE  package that pip installs: a wheel, a directory or a name (default: this tree)
PYTHON is the interpreter to use, 3.11 or newer (default: python3)."

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

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
    if [ "$dry_run" ]; then
        "$python" -c 'import shlex, sys; print(shlex.join(sys.argv[1:]))' "$@"
    else
        "$@"
    fi
}

[ "$(id -u)" = 0 ] || [ "$dry_run" ] || fail "run this script as root"
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
    || fail "$python is not Python 3.11 or newer; set PYTHON to another interpreter"
"$python" -c 'import ensurepip, venv' 2>/dev/null \
    || fail "$python cannot make virtual environments (Debian: apt-get install python3-venv)"
command -v systemd-sysusers >/dev/null || fail "systemd-sysusers is not installed"

[ ! "$root" ] || root=$(realpath -m "$root")
settings=$root/etc/api-exporter
[ ! -d "$settings" ] || [ -x "$settings" ] || fail "run this script as root: it looks into $settings"

# The program, first: where it cannot be installed, nothing is. A new environment beside what runs,
# which it replaces below, once it works.
venv=$root/opt/api-exporter
new=$venv.env-new
copy=
if [ ! "$dry_run" ]; then
    trap 'rm -rf "$copy" "$new"' EXIT
    trap 'exit 1' HUP INT TERM
    install -d "$root/opt"
    new=$(mktemp -d "$venv.env-XXXXXX")
    chmod 755 "$new"
fi
run "$python" -m venv "$new"
# A tree is built in a copy of root's, whose git trusts it: nothing of root's stays in the tree, and
# nothing old gets in from its build/.
if [ -d "$source" ] && [ ! "$dry_run" ]; then
    copy=$(mktemp -d)
    (cd "$source" && tar -cf - --exclude=./.venv --exclude=./build --exclude='./*.egg-info' .) | tar -xf - --no-same-owner -C "$copy"
    source=$copy
fi
run "$new/bin/python" -I -m pip install --quiet --disable-pip-version-check "${source}[fast]"
# From / because twistd looks for plugins in the current directory, too.
cd /
run "$new/bin/twistd" api-exporter --version

# The user, and its group by number: a scratch root's group has no name outside.
run install -D -m 644 "$deploy/systemd/sysusers.conf" "$root/etc/sysusers.d/api-exporter.conf"
run systemd-sysusers ${root:+"--root=$root"} api-exporter.conf
group=$(sed -n 's/^api-exporter:[^:]*:\([0-9]*\):.*/\1/p' "$root/etc/group" 2>/dev/null || true)
group=${group:-api-exporter}

# The settings: never overwritten, but their owner and mode are put right.
run install -d -m 750 -o root -g "$group" "$settings"
[ -e "$settings/config" ] \
    || run sh -c '"$0" --settings >"$1.new" && mv "$1.new" "$1"' "$new/bin/api-exporter" "$settings/config"
run chown "root:$group" "$settings/config"
run chmod 640 "$settings/config"

# The units. The token comes from its own file where there is one.
units=$root/etc/systemd/system
dropins=$units/api-exporter.service.d
run install -D -m 644 -t "$units" "$deploy/systemd/api-exporter.service" \
    "$deploy/systemd/api-exporter.socket"
# A placeholder (deploy/addresses) is no documentation.
run sed -i '/^Documentation=.*\.example\//d' "$units/api-exporter.service"
run install -D -m 644 -t "$dropins" "$deploy/systemd/api-exporter.service.d/hardened.conf"
if [ -e "$settings/token" ]; then
    run chown root:root "$settings/token"
    run chmod 600 "$settings/token"
    run install -m 644 -t "$dropins" "$deploy/systemd/api-exporter.service.d/token.conf"
else
    run rm -f "$dropins/token.conf"
fi

# The change: a link, so that the environment stays where it was made. 0.1 had a directory here.
if [ -d "$venv" ] && [ ! -L "$venv" ]; then
    run mv -T "$venv" "$venv.env-old"
fi
run ln -s "${new##*/}" "$new.link"
current=$new
new=
run mv -T "$current.link" "$venv"
if [ ! "$root" ] && [ -d /run/systemd/system ]; then
    run systemctl daemon-reload
    run systemctl try-restart api-exporter.service
fi
for old in "$venv".env-*; do
    [ "$old" = "$current" ] || run rm -rf "$old"
done

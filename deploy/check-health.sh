#!/bin/sh
# Ask the exporter whether it is well: one line, and status 0 (OK) or 2 (CRITICAL).
#   check-health.sh [URL [SECONDS]]
# Without a URL it asks where the exporter's settings say that it listens. With a URL that
# ends in /ready in place of /health, also whether the peers are fresh.

PATH=$PATH:/opt/api-exporter/bin
config=/etc/api-exporter/config

if ! command -v api-exporter >/dev/null; then
    echo "CRITICAL: api-exporter is neither on the PATH nor in /opt/api-exporter/bin"
    exit 2
fi
if [ $# = 0 ] && [ -r "$config" ]; then
    set -- --config "$config"
fi
exec api-exporter --health "$@"

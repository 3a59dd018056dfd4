#!/bin/sh
# Check that the exporter works: prints one line, exits with 0 (OK) or 2 (CRITICAL).
#   check-health.sh [URL [SECONDS]]
# Without a URL the script takes the address from the exporter's settings. A URL that ends in
# /ready in place of /health also checks that the peers are fresh.

PATH=$PATH:/opt/api-exporter/bin
config=/etc/api-exporter/config

if ! command -v api-exporter >/dev/null; then
    echo "CRITICAL: the command api-exporter is not on the PATH and not in /opt/api-exporter/bin"
    exit 2
fi
if [ $# = 0 ] && [ -r "$config" ]; then
    set -- --config "$config"
fi
status=0
api-exporter --health "$@" || status=$?
case $status in
0 | 2) exit "$status" ;;
esac
echo "CRITICAL: api-exporter does not start: status $status"
exit 2

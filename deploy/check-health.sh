#!/bin/sh
# Ask the exporter whether it is well: one line, and status 0 (OK) or 2 (CRITICAL).
#   check-health.sh [URL [SECONDS]]
# With /ready in place of /health, also whether the peers are fresh.

url=${1:-http://127.0.0.1:8080/health}
limit=${2:-10}

if command -v curl >/dev/null; then
    answer=$(curl --fail --silent --max-time "$limit" --output /dev/null \
        --write-out '%{http_code} after %{time_total} s %{errormsg}' "$url")
else # as in a container
    answer=$(timeout "$limit" python3 -c \
        'import sys, urllib.request as web; print(web.urlopen(sys.argv[1]).status)' \
        "$url" 2>&1)
fi
status=$?

answer=$(echo "$answer" | tail -n 1)
if [ "$status" = 0 ]; then
    echo "OK: $url: $answer"
else
    echo "CRITICAL: $url: ${answer:-no answer within $limit s}"
    exit 2
fi

#!/bin/sh
# The exporter's port, open to private networks only.
#   load, also again:  api-exporter.sh
#   remove:            api-exporter.sh remove
set -eu

port=8080
ranges=10.0.0.0/8,172.16.0.0/12,192.168.0.0/16
# NetBird's own range, and the IPv6 addresses that are private: closed or open.
overlay=closed
overlay_ipv4=100.64.0.0/10
overlay_ipv6=fc00::/7

case $overlay in
    open)
        ipv4="-A API-EXPORTER -s $ranges,$overlay_ipv4 -j ACCEPT"
        ipv6="-A API-EXPORTER -s $overlay_ipv6 -j ACCEPT"
        ;;
    closed)
        ipv4="-A API-EXPORTER -s $ranges -j ACCEPT"
        ipv6=
        ;;
    *)
        echo "api-exporter.sh: overlay is $overlay, neither open nor closed" >&2
        exit 1
        ;;
esac

# The chain is replaced as a whole; the jump to it is put in front of INPUT once.
load() {
    "$1-restore" --wait --noflush <<EOF
*filter
:API-EXPORTER - [0:0]
-A API-EXPORTER -p tcp -m tcp ! --dport $port -j RETURN
-A API-EXPORTER -i lo -j ACCEPT
$2
-A API-EXPORTER -j DROP
COMMIT
EOF
    "$1" --wait --check INPUT -p tcp -j API-EXPORTER 2>/dev/null \
        || "$1" --wait --insert INPUT -p tcp -j API-EXPORTER
}

remove() {
    "$1" --wait --list-rules >/dev/null # says so where it may not
    while "$1" --wait --delete INPUT -p tcp -j API-EXPORTER 2>/dev/null; do :; done
    "$1" --wait --flush API-EXPORTER 2>/dev/null || return 0
    "$1" --wait --delete-chain API-EXPORTER
}

case ${1:-load} in
    load)
        load iptables "$ipv4"
        load ip6tables "$ipv6"
        ;;
    remove)
        remove iptables
        remove ip6tables
        ;;
    *)
        echo "usage: api-exporter.sh [remove]" >&2
        exit 2
        ;;
esac

#!/usr/bin/env python3
"""Check whether a STUN server answers, for node_exporter's textfile collector."""

import os
import socket
import sys

BINDING_REQUEST = bytes.fromhex("000100002112a442")
"""A request without attributes. A random number follows, which the response repeats."""

BINDING_SUCCESS = b"\1\1"


def main() -> None:
    """Print the metric."""
    if len(sys.argv) != 3:
        sys.exit("usage: stun.py HOST PORT")
    request = BINDING_REQUEST + os.urandom(12)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
        stun.settimeout(3)
        try:
            stun.sendto(request, (sys.argv[1], int(sys.argv[2])))
            response = stun.recv(1500)
        except OSError:
            response = b""
    up = response[:2] == BINDING_SUCCESS and response[4:20] == request[4:]
    sys.stdout.write(
        "# HELP netbird_stun_up Whether the STUN server answers.\n"
        "# TYPE netbird_stun_up gauge\n"
        f"netbird_stun_up {int(up)}\n"
    )


if __name__ == "__main__":
    main()

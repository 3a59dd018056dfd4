"""`/sd/accounts`: the accounts as targets, for Prometheus' `http_sd_configs`.

Facts: docs/http_sd.md of Prometheus. A label that begins with `__param_` becomes a
parameter of the scrape.
"""

import json
import re
from collections.abc import Iterable
from ipaddress import IPv6Address

from twisted.web.server import Request

from api_exporter.serving.page import TextPage, may_know

_ADDRESS = re.compile(
    r"(?:[A-Za-z0-9_.-]{1,253}|\[(?P<ip>[0-9A-Fa-f:.]{2,45})\])(?::(?P<port>\d{1,5}))?"
)


class AccountTargets(TextPage):
    """A target for each account: this exporter, asked for that account.

    Args:
        metrics_path: where the metrics are.
    """

    media_type = b"application/json"

    def __init__(self, accounts: Iterable[str], *, metrics_path: str) -> None:
        super().__init__()
        self._accounts = tuple(accounts)
        self._path = metrics_path

    def text(self, request: Request) -> str:
        """A JSON list; the address is the one that was asked, or that of the query."""
        hosts = request.requestHeaders.getRawHeaders(b"host", [])
        wanted = request.args.get(b"address") or hosts
        address = b",".join(wanted).decode("ascii", "replace")
        if set(request.args) - {b"address"} or not _is(address):
            request.setResponseCode(400)
            request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
            return (
                "Ask for /sd/accounts or /sd/accounts?address=HOST:PORT, where the"
                " address is that of this exporter.\n"
            )
        known, usual = may_know(request), {}
        if self._path != "/metrics":
            usual["__metrics_path__"] = self._path
        if request.isSecure():
            usual["__scheme__"] = "https"
        targets = [
            {
                "targets": [address],
                "labels": {"__param_account": name, "account": name, **usual},
            }
            for name in self._accounts
            if name in known
        ]
        return json.dumps(targets) + "\n"


def _is(address: str) -> bool:
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match["port"] or 80) < 65536:
        return False
    try:
        IPv6Address(match["ip"] or "::")
    except ValueError:
        return False
    return True

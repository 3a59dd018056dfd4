"""`/sd/accounts`: the accounts as targets, for Prometheus."""

import json
import re
from collections.abc import Iterable
from ipaddress import IPv6Address

from twisted.web.server import Request

from api_exporter.serving.page import TextPage, error_line, visible_accounts

_ADDRESS = re.compile(
    r"(?:[A-Za-z0-9_.-]{1,253}|\[(?P<ip>[0-9A-Fa-f:.]{2,45})\])(?::(?P<port>\d{1,5}))?"
)


class AccountTargets(TextPage):
    """`/sd/accounts`: one target per account, each this exporter with `?account=NAME`.

    Facts: docs/http_sd.md of Prometheus. A label that begins with `__param_` becomes a
    parameter of the scrape.
    """

    media_type = b"application/json"

    def __init__(self, accounts: Iterable[str], *, metrics_path: str) -> None:
        super().__init__()
        self._accounts = accounts
        self._metrics_path = metrics_path

    def text(self, request: Request) -> str:
        """Return a JSON list; the address is the query's, else the Host header's."""
        hosts = request.requestHeaders.getRawHeaders(b"host", [])
        addresses = request.args.get(b"address") or hosts
        address = b",".join(addresses).decode("ascii", "replace")
        if set(request.args) - {b"address"} or not _is_address(address):
            return error_line(
                request,
                400,
                "Request /sd/accounts or /sd/accounts?address=HOST:PORT, where the"
                " address is that of this exporter.",
            ).decode()
        visible, extra_labels = visible_accounts(request), {}
        if self._metrics_path != "/metrics":
            extra_labels["__metrics_path__"] = self._metrics_path
        if request.isSecure():
            extra_labels["__scheme__"] = "https"
        targets = [
            {
                "targets": [address],
                "labels": {"__param_account": name, "account": name, **extra_labels},
            }
            for name in self._accounts
            if name in visible
        ]
        return json.dumps(targets) + "\n"


def _is_address(address: str) -> bool:
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match["port"] or 80) < 65536:
        return False
    try:
        IPv6Address(match["ip"] or "::")
    except ValueError:
        return False
    return True

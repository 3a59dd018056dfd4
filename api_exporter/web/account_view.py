"""An account as pages see it: what is known of its network."""

from collections.abc import Sequence
from typing import Protocol

from api_exporter.attention.watch import Attention
from api_exporter.collectors.table import Collector
from api_exporter.exposition.pages import Pages
from api_exporter.netbird.inventory import Inventory
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.history import History


class AccountView(Protocol):
    """See `refresh.network.Network`. The name is empty where there is one account."""

    @property
    def account(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def stretched(self) -> str: ...
    @property
    def collectors(self) -> Sequence[Collector]: ...
    @property
    def pages(self) -> Pages: ...
    @property
    def telemetry(self) -> AccountTelemetry: ...
    @property
    def history(self) -> History: ...
    @property
    def inventory(self) -> Inventory: ...
    @property
    def attention(self) -> Attention: ...

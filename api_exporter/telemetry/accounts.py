"""What is told of all accounts together."""

from collections.abc import Collection, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api_exporter.netbird.resources import UP
from api_exporter.telemetry.account import AccountTelemetry


class Accounts(Collector):
    """The gauges of several accounts, beside those of the process."""

    def __init__(self, accounts: Mapping[str, AccountTelemetry]) -> None:
        self._accounts = accounts

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "api_exporter_accounts",
            "Accounts that this process serves.",
            value=len(self._accounts),
        )
        family = GaugeMetricFamily(
            "api_exporter_account_up",
            "netbird_api_up of the account.",
            labels=["account"],
        )
        for name, telemetry in self._accounts.items():
            up = telemetry.standings[UP].up
            if up is not None:
                family.add_metric([name], up)
        yield family


def summary(accounts: Collection[AccountTelemetry]) -> str:
    """Their state in one line, such as `48 of 50 accounts up`."""
    up = sum(telemetry.standings[UP].up is True for telemetry in accounts)
    return f"{up} of {len(accounts)} accounts up"

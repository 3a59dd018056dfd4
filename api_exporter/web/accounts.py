"""The pages of several accounts together: what is shown to whoever names none."""

from collections.abc import Mapping

from api_exporter.exposition.pages import Pages
from api_exporter.refresh.network import Network
from api_exporter.serving.page import Refusal
from api_exporter.telemetry.process import account_gauges
from api_exporter.web.account_targets import AccountTargets
from api_exporter.web.context import SiteContext
from api_exporter.web.health import AllHealth
from api_exporter.web.metrics import Metrics
from api_exporter.web.ready import AllReady
from api_exporter.web.status.overview import Overview
from api_exporter.web.tree import SummaryPages


def summary(accounts: Mapping[str, Network], context: SiteContext) -> SummaryPages:
    """The metrics are those of the process, and which accounts are up."""
    telemetries = {name: network.telemetry for name, network in accounts.items()}
    account_gauges(context.process.registry, telemetries)
    return SummaryPages(
        status=Overview(accounts, context),
        health=AllHealth(accounts, context),
        ready=AllReady(accounts, context),
        metrics=Metrics(Pages([]), context.process.registry, context=context),
        discovery=Refusal(
            400, "account is missing: ask for /sd?account=NAME&port=9100"
        ),
        targets=AccountTargets(accounts, metrics_path=context.metrics_path),
    )

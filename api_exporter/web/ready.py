"""`/ready`: whether the records of the peers are reliable, with reasons, as JSON."""

from collections.abc import Mapping

from twisted.web.server import Request

from api_exporter.netbird.resources import UP
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import JsonPage
from api_exporter.telemetry.freshness import UNRELIABLE_PERIODS, Freshness
from api_exporter.upstream.advice import advice
from api_exporter.web.context import SiteContext


def reasons(freshness: Freshness, now: float) -> list[dict[str, str]]:
    """Return why the records of the peers are not reliable; empty if they are.

    The metrics of the peers stay longer: until METRICS_MAX_AGE.
    """
    found = []
    error = freshness.error
    if error is not None:
        found.append(
            {"reason": error.reason, "message": str(error), "advice": advice(error)}
        )
    if freshness.last_success is None:
        found.append(
            {
                "reason": "never_read",
                "message": "no refresh of the peers has succeeded yet",
            }
        )
    elif (
        age := now - freshness.last_success
    ) > UNRELIABLE_PERIODS * freshness.period or freshness.withdrawn:
        found.append(
            {
                "reason": "too_old",
                "message": f"the last refresh of the peers was {age:.0f} s ago,"
                f" the interval is {freshness.period:g} s",
            }
        )
    return found


class Ready(JsonPage):
    """200 if the peers are reliable, otherwise 503. A request starts no refresh."""

    def __init__(self, network: AccountNetwork, context: SiteContext) -> None:
        super().__init__()
        self._network = network
        self._now = context.now

    def answer(self, request: Request) -> dict[str, object]:
        found = reasons(self._network.telemetry.freshness[UP], self._now())
        request.setResponseCode(503 if found else 200)
        return {"ready": not found, "reasons": found}


class AllReady(JsonPage):
    """200 if any account is ready, or if there is no account.

    One customer's invalid token must not take the others out of service.
    """

    def __init__(
        self, accounts: Mapping[str, AccountNetwork], context: SiteContext
    ) -> None:
        super().__init__()
        self._accounts = accounts
        self._now = context.now

    def answer(self, request: Request) -> dict[str, object]:
        now = self._now()
        found = {
            name: not reasons(network.telemetry.freshness[UP], now)
            for name, network in self._accounts.items()
        }
        ready = any(found.values()) or not found
        request.setResponseCode(200 if ready else 503)
        return {"ready": ready, "accounts": found}

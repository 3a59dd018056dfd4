"""What is said of a refresh that has ended: counted once, logged at a change."""

from msgspec import Struct
from twisted.logger import Logger

from api_exporter.netbird.resources import CURRENT_USER, UP
from api_exporter.plurals import counted
from api_exporter.ports import Now, UpstreamError
from api_exporter.refresh.pipeline import LastBody
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.log import log_of

COMPLAINT_PERIOD = 3600.0
"""Seconds, at least, between two times that a resource's bad records are told of."""


class Complained(Struct, frozen=True):
    """What was wrong with a resource's records when that was said, and when."""

    kinds: frozenset[str]
    at: float


class Outcomes:
    """Tells telemetry and log."""

    log = Logger()

    def __init__(
        self,
        *,
        telemetry: AccountTelemetry,
        now: Now,
        account: str = "",
    ) -> None:
        self.log = log_of(account, self.log)
        self._telemetry = telemetry
        self._now = now
        self._told: set[str] = set()
        self._pointless: set[str] = set()
        self._complained: dict[str, Complained] = {}

    def succeeded(self, name: str, body: LastBody, seconds: float) -> None:
        """A refresh ended well, after so many seconds."""
        failures = self._telemetry.standings[name].failures
        self._telemetry.succeeded(
            name,
            records=body.records,
            rejected=body.rejected,
            seconds=seconds,
            at=self._now(),
        )
        self.log.debug(
            "refreshed {resource}",
            resource=name,
            records=body.records,
            rejected=body.rejected,
            milliseconds=round(1000 * seconds),
        )
        if body.complaints:
            self._rejected(name, body)
        if name in self._told:
            self._told.discard(name)
            after = f" after {counted(failures, 'failure')}" if failures else ""
            self.log.info("{resource} can be refreshed again" + after, resource=name)

    def failed(self, name: str, error: UpstreamError, seconds: float) -> None:
        """A refresh failed. What fails as the peers do is worth no line of its own."""
        self._telemetry.failed(name, error.kept(), seconds=seconds, at=self._now())
        peers = self._telemetry.standings[UP].error
        alike = name != UP and peers is not None and peers.reason == error.reason
        if name not in self._told and not alike:
            self._told.add(name)
            traced = {"request_id": error.request_id} if error.request_id else {}
            self.log.warn(
                "cannot refresh {resource}: {why}",
                resource=name,
                why=str(error),
                reason=error.reason,
                **traced,
            )

    def unsupported(
        self, name: str, why: str, seconds: float, *, restricted: bool = False
    ) -> None:
        """The upstream does not have it, or not for us: no failure, said once, and
        again where it ends one. NetBird refuses the current user to all service users.
        """
        standing = self._telemetry.standings[name]
        known = standing.supported is False and standing.restricted == restricted
        if name in self._told or not (known or name == CURRENT_USER):
            self.log.info(why, resource=name)
        self._told.discard(name)
        self._telemetry.unsupported(
            name, seconds=seconds, at=self._now(), restricted=restricted
        )

    def restricted(self, name: str) -> None:
        """Log once that a resource is withheld, and count no further refreshes."""
        standing = self._telemetry.standings[name]
        if not standing.restricted or standing.error is not None:
            why = "{resource} is withheld: the token's user may not read all of it"
            self.unsupported(name, why, 0.0, restricted=True)
            self._pointless.add(name)

    def pointless(self, name: str) -> None:
        """There is nothing of it: no failure, said once, and it is not asked for."""
        standing = self._telemetry.standings[name]
        if standing.supported is not False or standing.error is not None:
            why = "{resource} is not requested: NetBird lists no object that needs it"
            self.unsupported(name, why, 0.0)
            self._pointless.add(name)

    def needed(self, name: str) -> None:
        """It is asked for; where nothing needed it, nobody knows what is there now."""
        if name in self._pointless:
            self._pointless.discard(name)
            self._telemetry.forget(name)

    def withdrawn(self, name: str, max_age: float) -> None:
        """It could not be refreshed for too long.

        While the peers fail that is no news: nobody asks for it.
        """
        self._complained.pop(name, None)
        self._telemetry.withdrawn(name)
        if name != UP and self._telemetry.standings[UP].error is not None:
            return
        self._told.add(name)
        self.log.warn(
            "metrics of {resource} have expired: no successful refresh for"
            " {seconds:g} s",
            resource=name,
            seconds=max_age,
        )

    def _rejected(self, name: str, body: LastBody) -> None:
        """Say what is wrong with records, but not again where only places change."""
        now = self._now()
        kinds = frozenset(words.partition("]: ")[2] for words in body.complaints)
        before = self._complained.get(name)
        if before and (kinds == before.kinds or now < before.at + COMPLAINT_PERIOD):
            return
        self._complained[name] = Complained(kinds, now)
        for complaint in body.complaints:
            self.log.warn(
                "a record is left out: {resource}{complaint}",
                resource=name,
                complaint=complaint,
            )
        if more := body.rejected - len(body.complaints):
            self.log.warn(
                "{count} of {resource} left out",
                count=counted(more, "more record"),
                resource=name,
            )

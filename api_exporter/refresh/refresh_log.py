"""The outcomes of refreshes, recorded in freshness, metrics and log."""

from msgspec.structs import replace
from twisted.logger import Logger

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import CURRENT_USER, UP
from api_exporter.netbird.unknown import Unknown
from api_exporter.plurals import with_noun
from api_exporter.ports import Attempt, UpstreamError
from api_exporter.refresh.life import LastBody, Lives, ReportedRejections
from api_exporter.subjects.account import INSTANCE_VERSION
from api_exporter.subjects.table import RESOURCE_BY_NAME
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.freshness import Freshness
from api_exporter.world import World

REPORT_PERIOD = 3600.0
"""Minimum seconds between two reports of a resource's rejected records."""


class RefreshLog:
    """Records the outcomes of refreshes in freshness, metrics and log."""

    log = Logger()

    def __init__(
        self, *, lives: Lives, telemetry: AccountTelemetry, world: World
    ) -> None:
        self.log = world.logger(self.log)
        self._lives = lives
        self._telemetry = telemetry
        self._clock, self._now = world.clock, world.now

    def record_attempt(self, attempt: Attempt) -> None:
        """Record a failed attempt for the peers: they count as failing immediately.

        The refresh itself may fail much later, because it retries the request.
        """
        if attempt.path != RESOURCE_BY_NAME[UP].path or attempt.reason is None:
            return
        before = self._lives[UP].known_freshness
        error = UpstreamError(
            attempt.reason,
            attempt.error,
            request_id=attempt.request_id,
            cure=attempt.cure,
        )
        since = before.failing_since
        if since is None:
            since = attempt.started + attempt.seconds
        self._change(UP, replace(before, error=error, failing_since=since))

    def succeeded(self, name: str, body: LastBody, seconds: float) -> None:
        life = self._lives[name]
        failures = life.known_freshness.failures
        self._telemetry.refreshed(name)
        self._change(
            name,
            life.known_freshness.succeeded(
                records=body.records,
                rejected=body.rejected,
                unknown=body.unknown,
                seconds=seconds,
                at=self._now(),
            ),
        )
        self.log.debug(
            "refreshed {resource}",
            resource=name,
            records=body.records,
            rejected=body.rejected,
            milliseconds=round(1000 * seconds),
        )
        if body.errors:
            self._report(name, body)
        elif life.rejections is not None:  # equal errors will be new ones
            life.rejections = replace(life.rejections, kinds=frozenset())
        self._log_recovery(name, failures)

    def _log_recovery(self, name: str, failures: int) -> None:
        if self._lives[name].failure_logged:
            self._lives[name].failure_logged = False
            after = f" after {with_noun(failures, 'failure')}" if failures else ""
            self.log.info("{resource} can be refreshed again" + after, resource=name)

    def held(self, name: str, seconds: float) -> None:
        """Record a good response that is not published yet."""
        before = self._lives[name].known_freshness
        after = Freshness(period=before.period, ended_at=self._now(), seconds=seconds)
        self._change(name, after)
        self._log_recovery(name, before.failures)

    def failed(self, name: str, error: UpstreamError, seconds: float) -> None:
        """Record a failed refresh; log it unless the peers fail for the same reason."""
        life = self._lives[name]
        self._telemetry.failed(name, error)
        self._change(
            name,
            life.known_freshness.failed(
                error.without_traceback(), seconds, self._now()
            ),
        )
        peers = self._lives[UP].known_freshness.error
        as_peers = name != UP and peers is not None and peers.reason == error.reason
        if not life.failure_logged and not as_peers:
            life.failure_logged = True
            fields = {"request_id": error.request_id} if error.request_id else {}
            self.log.warn(
                "cannot refresh {resource}: {error}",
                resource=name,
                error=str(error),
                reason=error.reason,
                **fields,
            )

    def unsupported(self, name: str, why: str, seconds: float) -> None:
        """Record that the upstream lacks a resource, or refuses it to this token.

        That is no failure. It is logged once, and again if it ends a failure. A refused
        current user is not logged: NetBird refuses it to all service users.
        """
        life = self._lives[name]
        before = life.known_freshness
        known = before.supported is False and not before.restricted
        if life.failure_logged or not (known or name == CURRENT_USER):
            self.log.info(why, resource=name)
        life.failure_logged = False
        self._telemetry.refreshed(name)
        self._change(name, before.refused(seconds, self._now()))

    def restricted(self, name: str, seconds: float | None = None) -> None:
        """Record that a resource is withheld, and log it once.

        Args:
            seconds: the duration of the refresh; None if it was not requested.
        """
        life = self._lives[name]
        before = life.known_freshness
        if life.failure_logged or not before.restricted:
            why = "{resource} is withheld: the token's user may not read all of it"
            self.log.info(why, resource=name)
        life.failure_logged = False
        if seconds is None:
            life.needless_logged = True
            self._change(name, before.withheld())
        else:
            self._telemetry.refreshed(name)
            self._change(name, before.withheld(seconds, self._now()))

    def pointless(self, name: str) -> None:
        """Log once that a resource is not requested, because it cannot have records."""
        freshness = self._lives[name].known_freshness
        if freshness.supported is not False or freshness.error is not None:
            why = "{resource} is not requested: NetBird lists no object that needs it"
            self.unsupported(name, why, 0.0)
            self._lives[name].needless_logged = True

    def needed(self, name: str) -> None:
        """Record that a resource is requested, possibly again."""
        life = self._lives[name]
        if life.needless_logged:
            life.needless_logged = False
            self.forget(name)

    def set_interval(self, name: str, period: float) -> None:
        """Record the actual seconds between two refreshes."""
        self._change(name, replace(self._lives[name].known_freshness, period=period))

    def forget(self, name: str) -> None:
        self._change(name, Freshness(period=self._lives[name].known_freshness.period))

    def expired(self, name: str, max_age: float) -> None:
        """Record that metrics expire.

        While the peers fail that is not logged: nothing else is requested then.
        """
        life = self._lives[name]
        life.rejections = None
        self._change(name, replace(life.known_freshness, withdrawn=True))
        if name != UP and self._lives[UP].known_freshness.error is not None:
            return
        life.failure_logged = True
        self.log.warn(
            "metrics of {resource} have expired: no successful refresh for"
            " {seconds:g} s",
            resource=name,
            seconds=max_age,
        )

    def _change(self, name: str, freshness: Freshness) -> None:
        before = self._lives[name].known_freshness
        self._lives[name].freshness = freshness
        if name == UP and _shown_up(freshness) is not _shown_up(before):
            self._telemetry.on_up_changed()

    def _report(self, name: str, body: LastBody) -> None:
        """Log the errors of records, but not if only their places have changed."""
        life, now = self._lives[name], self._clock.seconds()
        kinds = frozenset(words.partition("]: ")[2] for words in body.errors)
        before = life.rejections
        if before and (kinds == before.kinds or now < before.at + REPORT_PERIOD):
            return
        life.rejections = ReportedRejections(kinds, now)
        for record_error in body.errors:
            self.log.warn(
                "a record is left out: {resource}{error}",
                resource=name,
                error=record_error,
            )
        if more := body.rejected - len(body.errors):
            self.log.warn(
                "{count} of {resource} left out",
                count=with_noun(more, "more record"),
                resource=name,
            )


class UnknownLog:
    """Logs each unknown field or value once, and again for another server version."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._version = ""
        self._logged: dict[str, frozenset[str]] = {}

    def report(self, resource: str, unknown: Unknown, inventory: Inventory) -> None:
        for server in INSTANCE_VERSION.of(inventory) or ():
            if self._version and server.management_current_version != self._version:
                self._logged.clear()
            self._version = server.management_current_version
        logged = self._logged.get(resource, frozenset())
        if names := frozenset(unknown.names()) - logged:
            self._logged[resource] = logged | names
            self._log.info(
                "{resource} of NetBird {version} has fields or values that"
                " this version of api-exporter does not know: {names}",
                resource=resource,
                version=self._version or "(unknown version)",
                names=", ".join(sorted(names)),
            )


def _shown_up(freshness: Freshness) -> bool | None:
    """Return `up`; None while peers that were read are held back."""
    held = freshness.last_success is None and not freshness.restricted
    return None if freshness.up and held else freshness.up

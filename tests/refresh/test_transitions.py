"""The states of a resource, and the log lines between them."""

from math import inf

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.record_cache import NO_RECORDS
from api_exporter.netbird.resource_state import (
    LastBody,
    NotRead,
    ResourceState,
    max_age,
)
from api_exporter.ports import UpstreamError
from api_exporter.refresh.states import States
from api_exporter.refresh.transitions import (
    Event,
    Expired,
    Failed,
    LogLine,
    Read,
    Requested,
    Unread,
    next_state,
)

LOG = "access_log"
BROKEN = UpstreamError("http_5xx", "500: broken")


def body(error: str = "", *, rejected: int = 0) -> LastBody:
    """Return a body with a record that was rejected; with none if there is no error."""
    return LastBody(
        digest=(),
        records=5,
        rejected=rejected or bool(error),
        errors=(error,) if error else (),
        recognized=NO_RECORDS,
    )


class Story:
    """A state to which events happen, and the lines of the log."""

    def __init__(self) -> None:
        self.state = ResourceState(interval=30.0)
        self.lines: list[str] = []

    def __call__(self, *events: Event) -> "Story":
        for event in events:
            self.state, lines = next_state(self.state, event)
            self.lines += [_words(line) for line in lines if line.level != "debug"]
        return self


def _words(line: LogLine) -> str:
    return f"{line.level} {line.text.format(resource=LOG, **line.fields)}"


class NextStateTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.story = Story()

    def test_alike(self) -> None:
        """A failure like that of the peers is not logged, but another one is."""
        forbidden = UpstreamError("forbidden", "403: no")
        self.story(Failed(BROKEN, 0.0, 1.0, as_peers=True), Failed(forbidden, 0.0, 2.0))
        self.assertEqual([f"warn cannot refresh {LOG}: 403: no"], self.story.lines)
        state = self.story.state
        self.assertEqual(
            (2, 2, 2), (state.failures, state.refreshes, state.failed_refreshes)
        )

    def test_needed_again(self) -> None:
        """The state of an unneeded resource is reset once, when it is needed."""
        state = self.story(Unread(NotRead.HAS_NO_RECORDS), Requested()).state
        self.assertIsNone(state.supported)
        state = self.story(Unread(NotRead.REFUSED, 0.1, 5.0), Requested()).state
        self.assertIs(False, state.supported)

    def test_withheld(self) -> None:
        """A withheld resource is logged once, and is reset when it is needed again."""
        state = self.story(*[Unread(NotRead.RESTRICTED)] * 2).state
        self.assertEqual(
            (True, 0.0, 0), (state.restricted, state.seconds, state.refreshes)
        )
        words = "is withheld: the token's user may not read all of it"
        self.assertEqual([f"info {LOG} {words}"], self.story.lines)
        self.assertFalse(self.story(Requested()).state.restricted)

    def test_withheld_peers(self) -> None:
        """The peers are requested also while they are withheld: they stay so."""
        state = self.story(Unread(NotRead.RESTRICTED, 0.1, 5.0), Requested()).state
        self.assertEqual((True, True, 1), (state.restricted, state.up, state.refreshes))

    def test_refused(self) -> None:
        """Nothing is known of a refused resource: none of it is published."""
        read = Read(body("[0]: no id"), 1.0, 5.0, 5.0)
        state = self.story(read, Unread(NotRead.REFUSED, 1.0, 35.0)).state
        self.assertEqual(
            (None, 0, 0), (state.last_success, state.records, state.rejected)
        )
        self.assertEqual((False, None, 2), (state.supported, state.up, state.refreshes))

    def test_dormant(self) -> None:
        """A dormant resource never expires, and wakes as if new, without lines."""
        self.story.state = ResourceState(
            interval=30.0, path="api/x", expires=1.0, window_ends=2.0, body=body()
        )
        state = self.story(Unread(NotRead.DORMANT)).state
        self.assertEqual(
            (None, inf, inf, None),
            (state.path, state.expires, state.window_ends, state.body),
        )
        state = self.story(Requested()).state
        self.assertEqual((None, None), (state.not_read, state.up))
        self.assertEqual([], self.story.lines)

    def test_dormant_after_failure(self) -> None:
        """The end of a failure that was logged has a line with words."""
        self.story(Failed(BROKEN, 1.0, 5.0))
        self.story.lines.clear()
        self.story(Unread(NotRead.DORMANT))
        self.assertEqual(
            [f"info {LOG} is not requested: no provider of the Agent Network is known"],
            self.story.lines,
        )

    def test_refreshed(self) -> None:
        """A refresh has a line for debugging, with its figures."""
        read = Read(body("[1]: no id"), 0.25, 1.0, 1.0)
        _, (line, *_) = next_state(self.story.state, read)
        figures = {"records": 5, "rejected": 1, "duration_seconds": 0.25}
        told = ("debug", "refreshed {resource}", figures)
        self.assertEqual(told, (line.level, line.text, line.fields))

    def test_rejections(self) -> None:
        """Errors of records are logged when they begin, and after an hour."""
        for now, error, lines in (
            (0.0, "[1]: no id", 1),
            (3599.0, "[1]: no name", 1),
            (3600.0, "[1]: no name", 2),
            (9000.0, "[1]: no name", 2),
            (9030.0, "", 2),
            (9060.0, "[2]: no name", 3),
            (9090.0, "", 3),
            (12659.0, "[1]: no name", 3),
        ):
            self.story(Read(body(error), 0.0, -now, now))
            self.assertEqual(lines, len(self.story.lines), now)
        many = body("[7]: no name", rejected=3)
        self.story(Expired(300.0, peers_fail=False), Read(many, 0.0, 1.0, 12700.0))
        self.assertEqual(
            [
                f"warn metrics of {LOG} have expired: no successful refresh for 300 s",
                f"warn a record is left out: {LOG}[7]: no name",
                f"warn 2 more records of {LOG} left out",
                f"info {LOG} can be refreshed again",
            ],
            self.story.lines[-4:],
        )

    def test_no_records_after_a_failure(self) -> None:
        """The end of a failure is logged if the resource is no longer requested."""
        nothing, fails = Unread(NotRead.HAS_NO_RECORDS), Failed(BROKEN, 0.0, 1.0)
        for _ in range(2):
            self.story(nothing, nothing, fails)
        self.story(nothing)
        ended = f"info {LOG} is not requested: NetBird lists no object that needs it"
        failed = f"warn cannot refresh {LOG}: 500: broken"
        self.assertEqual([ended, *[failed, ended] * 2], self.story.lines)
        self.assertIsNone(self.story.state.error)


class StatesTests(SynchronousTestCase):
    def test_dormant(self) -> None:
        """A dormant resource is not among the others, and returns to its place."""
        states = States({"peers": 30.0, LOG: 30.0, "groups": 60.0}, lambda *_: None)
        states.record(LOG, Unread(NotRead.DORMANT))
        states.change(LOG, due=1.0)
        self.assertEqual((["peers", "groups"], 3), ([*states], len(states.every)))
        states.record(LOG, Requested())
        self.assertEqual([*states.every], [*states])
        self.assertEqual(1.0, states[LOG].due)


class MaxAgeTests(SynchronousTestCase):
    def test_max_age(self) -> None:
        """Metrics never expire before the next refresh is overdue."""
        self.assertEqual([300, 900], [max_age(p) for p in (30, 300)])
        self.assertEqual([60, 450], [max_age(p, 60) for p in (30, 300)])
        self.assertEqual([45, 45], [max_age(p, 1) for p in (1, 30)])

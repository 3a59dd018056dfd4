from collections.abc import Generator

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.pages import Payload
from api_exporter.refresh.slices import Slicer
from api_exporter.web.discovery.answers import Answers

STEPS = 100
"""Of each answer here; each takes a millisecond."""


class Turning(Clock):
    """Moves by turns of the event loop."""

    def turn(self) -> None:
        """Do what is due, and not what becomes due by that."""
        due, self.calls = self.calls, []
        for call in due:
            call.called = True
            call.func(*call.args)


class MakingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Turning()
        self.making = Answers(Slicer(self.clock).run)
        self.begun: list[str] = []
        self.under_way: list[str] = []

    def steps(self, query: str) -> Generator[None, None, Payload]:
        self.begun.append(query)
        self.under_way.append(query)
        try:
            for _ in range(STEPS):
                self.assertEqual([query], self.under_way)
                self.clock.rightNow += 0.001
                yield
            if query == "broken":
                raise ZeroDivisionError
            return Payload((query.encode(),), 1)
        finally:
            self.under_way.remove(query)

    def ask(self, query: str, edition: int = 1, account: str = "") -> Deferred[Payload]:
        return self.making.made((account, query), (edition,), self.steps(query))

    def work(self, turns: int = 1000) -> None:
        """Let the event loop turn so often."""
        for _ in range(turns):
            self.clock.turn()

    def test_made(self) -> None:
        """An answer is made in slices, and kept."""
        asked = self.ask("a")
        self.work(3)
        self.assertNoResult(asked)
        self.work()
        made = self.successResultOf(asked)
        self.assertEqual((b"a",), made.slices)
        self.assertIs(made, self.making.kept.get(("", "a"), (1,)))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_once(self) -> None:
        """Who asks the same while it is made gets the same."""
        first = self.ask("a")
        self.work(3)
        second = self.ask("a")
        self.work()
        self.assertIs(self.successResultOf(first), self.successResultOf(second))
        self.assertEqual(["a"], self.begun)

    def test_turns(self) -> None:
        """Different answers are made one after the other, in the order of asking."""
        asked = [self.ask("a"), self.ask("b"), self.ask("a", edition=2)]
        self.work()
        self.assertEqual(["a", "b", "a"], self.begun)
        slices = [self.successResultOf(one).slices for one in asked]
        self.assertEqual([(b"a",), (b"b",), (b"a",)], slices)

    def test_accounts(self) -> None:
        """Accounts take turns: who asks much of one does not hold up the others."""
        asked = [self.ask(f"a{n}", account="acme") for n in range(20)]
        asked += [self.ask(f"b{n}", account="big") for n in range(2)]
        asked.append(self.ask("c", account="corp"))
        self.work(10_000)
        first = ["a0", "a1", "b0", "c", "a2", "b1", "a3"]
        self.assertEqual(first, self.begun[: len(first)])
        self.assertEqual(23, len(self.begun))
        for one in asked:
            self.successResultOf(one)

    def test_gone(self) -> None:
        """When the last one who wanted it has gone, nobody works on it any more."""
        first, second = self.ask("a"), self.ask("a")
        self.work(3)
        first.cancel()
        self.failureResultOf(first, CancelledError)
        self.work(3)
        self.assertEqual(["a"], self.under_way)
        second.cancel()
        self.failureResultOf(second, CancelledError)
        self.work()
        self.assertEqual(([], []), (self.under_way, self.clock.getDelayedCalls()))
        self.assertIsNone(self.making.kept.get(("", "a"), (1,)))

    def test_gone_before_its_turn(self) -> None:
        """Who goes while others' answers are made takes no turn."""
        first, second, third = self.ask("a"), self.ask("b"), self.ask("c")
        second.cancel()
        self.failureResultOf(second, CancelledError)
        self.work()
        self.assertEqual(["a", "c"], self.begun)
        for asked in (first, third):
            self.successResultOf(asked)

    def test_again(self) -> None:
        """What all have left is made anew for the next one."""
        self.ask("a").addErrback(lambda _: None).cancel()
        asked = self.ask("a")
        self.work()
        self.assertEqual((b"a",), self.successResultOf(asked).slices)

    def test_broken(self) -> None:
        """A failure is everybody's, and the next one has its turn."""
        asked = [self.ask("broken"), self.ask("broken")]
        after = self.ask("a")
        self.work()
        for one in asked:
            self.failureResultOf(one, ZeroDivisionError)
        self.successResultOf(after)
        self.assertIsNone(self.making.kept.get(("", "broken"), (1,)))

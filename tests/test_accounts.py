"""Many accounts start gradually, within the limits of their tokens."""

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter import service
from api_exporter.account import SharedState
from api_exporter.accounts import AccountSet
from api_exporter.settings import environment
from tests.memory_reactor import MemoryReactorClock

STEP = 0.05


class StartTests(SynchronousTestCase):
    def started(self, count: int, *, tokens: int) -> MemoryReactorClock:
        """Return so many accounts, sharing so many tokens."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        for number in range(count):
            token = f"UPSTREAM_API_TOKEN=token-{number % tokens}\n"
            (folder / f"a{number:03}.conf").write_text(token)
        environ = {"ACCOUNTS_DIR": str(folder), "UPSTREAM_API_URL": "http://10.0.0.1"}
        settings = environment.read_settings(environ)
        reactor = MemoryReactorClock()
        shared = SharedState(settings.accounts.values())
        accounts = service.make_accounts(settings, reactor, shared)  # type: ignore[arg-type]
        accounts.startService()
        self.addCleanup(_stop, accounts, reactor)
        return reactor

    def begun(self, reactor: MemoryReactorClock, seconds: float) -> list[int]:
        """Return how many connections had begun at the end of each step."""
        reactor.advance(0)
        found = [len(reactor.tcpClients)]
        for _ in range(round(seconds / STEP)):
            reactor.advance(STEP)
            found.append(len(reactor.tcpClients))
        return found

    def test_sixty(self) -> None:
        """Twenty of sixty accounts start each second, with two requests each."""
        begun = self.begun(self.started(60, tokens=60), 3.0)
        self.assertEqual(2, begun[0])
        steps = round(1 / STEP) - 1  # a little less than a second: times are rounded
        grown = [b - a for a, b in zip(begun, begun[steps:], strict=False)]
        self.assertLessEqual(max(grown), 40)
        self.assertEqual(120, begun[-1])

    def test_one_token(self) -> None:
        """At most eight requests with a token run at once, from the start."""
        self.assertEqual(8, self.begun(self.started(30, tokens=1), 2.0)[-1])

    def test_stopped(self) -> None:
        """An account that stops before its start never starts."""
        reactor = self.started(30, tokens=30)
        reactor.advance(0)
        self.doCleanups()
        self.begun(reactor, 2.0)
        self.assertEqual((2, []), (len(reactor.tcpClients), reactor.getDelayedCalls()))


def _stop(accounts: AccountSet, reactor: MemoryReactorClock) -> None:
    accounts.stopService()
    reactor.advance(0)

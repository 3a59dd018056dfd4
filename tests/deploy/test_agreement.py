"""Findings and alerts tell the same of the same bodies: page and Prometheus agree."""

from collections.abc import Iterable

from msgspec.structs import replace
from prometheus_client import generate_latest
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import Groups, shipped
from simulation.company.network import SimulatedNetwork
from simulation.company.schedules import WEEK
from tests.attention.looking import findings, seen
from tests.attention.stock import (
    HAPPENS,
    HOUR,
    MINUTE,
    OPS,
    THINGS,
    TRIFLES,
    Stock,
    Thing,
)
from tests.attention.test_demo import BEGIN, NAMED, known
from tests.attention.test_demo import STEP as DEMO_STEP
from tests.bodies import STOCK_TIME
from tests.collectors.samples import page
from tests.deploy.agreement import Record, Rules, contradictions

STEP = 2 * MINUTE
"""Seconds between two looks."""

HAPPENING = (*THINGS, *TRIFLES)
USUAL = [one for one in HAPPENING if not one.important]

BEFORE = HAPPENS // STEP
"""Looks before it happens."""

LATE = 6
"""Looks until everything has been read again, and a little more."""

FIRST = BEGIN + 5 * HOUR + 40 * MINUTE
"""When the first two hours begin: others hold the cut line, and five on Friday."""

LOOKS = 2
"""In each step of the simulated week: a series that is older than five minutes ends."""


class StockTests(SynchronousTestCase):
    def lived(self, thing: Thing, rules: Rules) -> tuple[Record, int]:
        """What is told while it happens, and at which look it is mended."""
        waits = [rules.waits[alert] for alert in thing.alerts.split()]
        wait = max((wait for wait, _ in waits), default=HOUR)
        kept = max([thing.noticed, *(keep for _, keep in waits)])
        mended = BEFORE + int(wait) // STEP + LATE
        account = Stock(thing.important)
        record = Record(thing.name, STOCK_TIME + STEP)
        usual = {**account.replies, **thing.base}
        for look in range(mended + int(kept) // STEP + LATE):
            lasts = BEFORE <= look < mended
            account.replies = {**usual, **thing.replies} if lasts else usual
            for _ in range(0, STEP, MINUTE):
                account.minute()
            own = generate_latest(account.telemetry.registry).decode()
            text = f"{account.text().decode()}{own}up 1"
            record.look(text, account.told(), rules.wanted)
        return record, mended

    def tried(self, rules: Rules, things: Iterable[Thing]) -> None:
        """Both tell of each thing while it lasts, of nothing else, and never apart."""
        lives = [(thing, *self.lived(thing, rules)) for thing in things]
        fired = rules.fired([record for _, record, _ in lives], STEP)
        wrong: list[str] = []
        for thing, record, mended in lives:
            alerts = fired[thing.name]
            wrong += contradictions(record, alerts, rules.waits, STEP)
            before, during = (
                frozenset(x.split()) for x in (thing.before, thing.alerts)
            )
            for when, look, right, others in (
                ("before", BEFORE - 1, before, thing.others if before else ""),
                ("while it lasts", mended - 1, during, thing.others),
                ("after", -1, before, thing.others if before else ""),
            ):
                found, firing = record.findings[look], alerts[look]
                if (found, firing) != (right, right | set(others.split())):
                    told = f"findings {sorted(found)}, alerts {sorted(firing)}"
                    wrong.append(f"{thing.name}, {when}: {told}, not {sorted(right)}")
        self.assertEqual([], wrong, "\n".join(["", *wrong]))

    def test_shipped(self) -> None:
        """Of a stock account nothing is told; of each thing just what it is."""
        self.tried(Rules(self.mktemp(), shipped()), USUAL[::2])

    def test_shipped_others(self) -> None:
        """The same of the other half: a second processor lives through it."""
        self.tried(Rules(self.mktemp(), shipped()), USUAL[1::2])

    def test_important(self) -> None:
        """The same where the operator names a group."""
        groups = Groups(important=list(OPS), routers=[])
        rules = Rules(self.mktemp(), replace(shipped(), groups=groups))
        self.tried(rules, (one for one in HAPPENING if one.important))


class DemoTests(SynchronousTestCase):
    def test_week(self) -> None:
        """In the simulated company's week both tell the same.

        Two hours of every seven are looked at, as if each were a company of its own.
        """
        rules = Rules(self.mktemp(), NAMED)
        network, records = SimulatedNetwork(30), []
        for begin in range(FIRST, BEGIN + WEEK - 2 * HOUR, 7 * HOUR):
            record = Record(f"{(begin - BEGIN) / HOUR:.0f} h", begin)
            for at in range(begin, begin + 2 * HOUR, DEMO_STEP):
                inventory = known(network, at)
                found = findings(seen(inventory, now=at, thresholds=NAMED))
                told = {one.alert for one in found}
                text = page(inventory) + "netbird_api_up 1\nup 1"
                for _ in range(LOOKS):
                    record.look(text, told, rules.wanted)
            records.append(record)
        step = DEMO_STEP // LOOKS
        fired = rules.fired(records, step)
        wrong = [
            one
            for record in records
            for one in contradictions(record, fired[record.name], rules.waits, step)
        ]
        self.assertEqual([], wrong, "\n".join(["", *wrong]))

"""Findings and alerts agree on the same bodies."""

from collections.abc import Iterable

from msgspec.structs import replace
from prometheus_client import generate_latest
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import Groups, default_thresholds
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
"""Seconds between two evaluations."""

HAPPENING = (*THINGS, *TRIFLES)
USUAL = [one for one in HAPPENING if not one.important]

BEFORE = HAPPENS // STEP
"""Evaluations before the incident."""

LATE = 6
"""Evaluations until all has been refreshed, and some more."""

FIRST = BEGIN + 5 * HOUR + 40 * MINUTE
"""The begin of the first window. Others include the line cut and Friday 5 p.m."""

LOOKS = 2
"""Evaluations in each step of the week: a series older than five minutes ends."""


class StockTests(SynchronousTestCase):
    def lived(self, thing: Thing, rules: Rules) -> tuple[Record, int]:
        """Return the record of an incident, and the evaluation at which it ends."""
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
        """Findings and alerts show each incident while it lasts, and nothing else."""
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
        """A stock account has neither findings nor alerts; an incident has its own."""
        self.tried(Rules(self.mktemp(), default_thresholds()), USUAL[::2])

    def test_shipped_others(self) -> None:
        """The same holds for the other half, which a second processor runs."""
        self.tried(Rules(self.mktemp(), default_thresholds()), USUAL[1::2])

    def test_important(self) -> None:
        """The same holds for a group that the operator names."""
        groups = Groups(important=list(OPS), routers=[])
        rules = Rules(self.mktemp(), replace(default_thresholds(), groups=groups))
        self.tried(rules, (one for one in HAPPENING if one.important))


class DemoTests(SynchronousTestCase):
    def test_week(self) -> None:
        """In the simulated company's week, findings and alerts agree. The test
        evaluates two of every seven hours, each as a separate target.
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

"""Check that the simulation finds known bugs.

`python -m simulation.planted --days 30` plants each bug into a copy of the program. It
simulates three days of each seed, until an invariant is violated or the days are over.
"""

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path
from subprocess import run

from msgspec import Struct

from tests.correctness import record_result

ROOT = Path(__file__).parents[1]

WORLD = 3.0
"""Days of one seed. Many short runs find more than a long one."""


class Bug(Struct, frozen=True):
    """A replacement of a text that a file contains exactly once."""

    name: str
    file: str
    right: str
    wrong: str


BUGS = (
    Bug(
        "what is put together for a scrape outlives its pages",
        "exposition/pages.py",
        "self._pages[name] = page\n        self._wholes.clear()",
        "self._pages[name] = page",
    ),
    Bug(
        "a line is stale where one record of a block has changed",
        "exposition/incremental.py",
        "if lines != lines_before:",
        "if lines != lines_before and len(lines) > 1:",
    ),
    Bug(
        "a block's heading is missing or doubled",
        "exposition/incremental.py",
        "if old is None or old.head != len(before):",
        "if old is None:",
    ),
    Bug(
        "lines are kept although what they depend on has changed",
        "exposition/incremental.py",
        "if old is not None and old.given != family.given:",
        "if old is not None and old.given is None:",
    ),
    Bug(
        "a family is taken over although its resources have changed",
        "collectors/rows.py",
        "if before.get(row.metric.name) == edition:",
        "if row.metric.name in before:",
    ),
    Bug(
        "the compressed page has the checksum of its last piece",
        "exposition/pages.py",
        "joined = p.checksum_after(joined)",
        "joined = p.checksum_after(0)",
    ),
    Bug(
        "what is too old stays on the page",
        "refresh/pipeline.py",
        "if not self.knows(name):\n                inventory = self.inventory.with_",
        "if self.knows(name):\n                inventory = self.inventory.with_",
    ),
    Bug(
        "a change that keeps the number of records is not published",
        "refresh/pipeline.py",
        "return all(map(is_, records, before))",
        "return True",
    ),
    Bug(
        "two bodies with the same beginning are the same",
        "refresh/pipeline.py",
        "fingerprint(view[start : start + _DIGESTED_AT_ONCE])",
        "fingerprint(view[start : start + 64])",
    ),
    Bug(
        "METRICS_MAX_AGE is ignored",
        "telemetry/freshness.py",
        "return max(setting, OVERDUE_PERIODS * max(period, CONTENDED_PERIOD))",
        "return max(86400.0, setting, OVERDUE_PERIODS * max(period, CONTENDED_PERIOD))",
    ),
    Bug(
        "nothing is too old",
        "refresh/refresher.py",
        "life.expires = now + max(self._max_ages[name], LATE_PERIODS * period)",
        "life.expires = inf",
    ),
    Bug(
        "a resource is up although it was withdrawn",
        "telemetry/freshness.py",
        "return self.error is None and not self.withdrawn",
        "return self.ended_at is not None",
    ),
    Bug(
        "a peer that is gone is kept",
        "netbird/bodies.py",
        "[record for record in found.values() if record is not None]",
        "[record or old[id_] for id_, record in found.items()]",
    ),
    Bug(
        "of two records with one id the first counts",
        "netbird/bodies.py",
        "found[id_] = record\n",
        "found[id_] = found.get(id_) or record\n",
    ),
    Bug(
        "a record that is as long as before is not read again",
        "netbird/record_cache.py",
        "self._digest = fingerprint(text)",
        "self._digest = len(raw)",
    ),
    Bug(
        "personal data of one kind opens all of them",
        "netbird/facts/personal.py",
        "for f, kind in fields.items() if kind in kinds}",
        "for f, kind in fields.items()}",
    ),
    Bug(
        "the tokens of another user stay",
        "netbird/inventory.py",
        'removed.add("access_tokens")',
        "pass",
    ),
    Bug(
        "what needs a provider stays without the last one",
        "netbird/inventory.py",
        "removed.update(AGENT_RESOURCES)",
        "pass",
    ),
    Bug(
        "a slot is lost with each request",
        "refresh/budget.py",
        "self._free_slots[peers] += 1",
        "self._free_slots[peers] += peers",
    ),
    Bug(
        "one request more than the budget has",
        "refresh/budget.py",
        "allowed_at = self._affordable_at(1.0)",
        "allowed_at = self._affordable_at(0.0)",
    ),
    Bug(
        "no pause after a 429",
        "refresh/budget.py",
        "return max(allowed_at, paused)",
        "return allowed_at",
    ),
    Bug(
        "a start does not read everything at once",
        "refresh/schedule.py",
        "life.due = now if life.due is None else life.due",
        "life.due = now + 0.5 * life.period if life.due is None else life.due",
    ),
    Bug(
        "a failure has no line where the peers fail for another reason",
        "refresh/refresh_log.py",
        "peers is not None and peers.reason == error.reason",
        "self._lives[UP].known_freshness.failing_since is not None",
    ),
    Bug(
        "the end of a failure has no line where the resource is missing as before",
        "refresh/refresh_log.py",
        "if life.failure_logged or not (known or name == CURRENT_USER):",
        "if not (known or name == CURRENT_USER):",
    ),
    Bug(
        "a refresh that failed is never due again",
        "refresh/schedule.py",
        "wait = retry_delay(life.failures, life.period, self._jitter"
        ", error.retry_after)",
        "wait = life.period if name == self.peers_name else NEVER",
    ),
    Bug(
        "an audit event that shows up late is lost",
        "events/audit_cursor.py",
        "if event.id > cursor.floor",
        "if event.id > highest",
    ),
    Bug(
        "audit events are written twice",
        "events/audit_cursor.py",
        "and event.id not in recent",
        "and event.id != highest",
    ),
    Bug(
        "audit events are written again after SIGKILL",
        "events/audit_cursor.py",
        "return self.with_(keys[keys.index(self.last) + 1 :])",
        "return self",
    ),
    Bug(
        "cursors are counted as lines",
        "events/journal.py",
        "self._telemetry.written(count)",
        "self._telemetry.written(max(1, count))",
    ),
    Bug(
        "a log's file stays open after its rotation",
        "events/file.py",
        "self.close()",
        "self._file = None",
    ),
    Bug(
        "an unknown field of an event is written",
        "events/lines.py",
        'if kinds.get(name) in {"", *allowed}',
        'if kinds.get(name, "") in {"", *allowed}',
    ),
    Bug(
        "a finding is kept although only time has changed it",
        "attention/watch.py",
        "if everything or not finder.reads or changed",
        "if not finder.reads or changed",
    ),
    Bug(
        "a long wait inside a refresh keeps all others waiting",
        "upstream/fetcher.py",
        "wait > backoff.MAX_ATTEMPT_DELAY\n                    or deadline",
        "deadline",
    ),
    Bug(
        "a good answer does not reset the failures",
        "refresh/schedule.py",
        "life.failures, life.due = 0, due",
        "life.due = due",
    ),
    Bug(
        "an outage does not end",
        "refresh/schedule.py",
        "self._outage = None\n        self._recovered_at = now",
        "self._recovered_at = now",
    ),
    Bug(
        "a pause has a quarter of its length",
        "refresh/budget.py",
        "self._paused_until = now + retry_after",
        "self._paused_until = now + retry_after / 4",
    ),
    Bug(
        "twice as much of a limit is used",
        "refresh/rate_limits.py",
        "RATE_FRACTION = 0.9",
        "RATE_FRACTION = 1.8",
    ),
    Bug(
        "time and duration of a failure are swapped",
        "refresh/refresh_log.py",
        "error.without_traceback(), seconds, self._now()",
        "error.without_traceback(), self._now(), seconds",
    ),
    Bug(
        "a publication does not wait for its turn",
        "refresh/pipeline.py",
        "async with self._rendering:\n            # The path",
        "if True:\n            # The path",
    ),
    Bug(
        "a withdrawal does not wait for its turn",
        "refresh/pipeline.py",
        "async with self._rendering:\n            if not self.knows",
        "if True:\n            if not self.knows",
    ),
    Bug(
        "the shorter of two times decides when metrics expire",
        "refresh/refresher.py",
        "max(self._max_ages[name], LATE_PERIODS * period)",
        "min(self._max_ages[name], LATE_PERIODS * period)",
    ),
    Bug(
        "the earlier of two times decides when others are requested",
        "refresh/fair_share.py",
        "return max(min(self.others_due",
        "return min(min(self.others_due",
    ),
    Bug(
        "another account is not notified",
        "refresh/fair_share.py",
        "share.on_available()\n        return True",
        "return True",
    ),
    Bug(
        "a log does not get the bodies",
        "refresh/pipeline.py",
        "feature.body_readers[name](body.data)",
        "feature.body_readers[name]",
    ),
    Bug(
        "blocks of the same length have the same difference",
        "exposition/incremental.py",
        "key = id(old), id(new)",
        "key = len(old), len(new)",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m simulation.planted", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("number", type=int, nargs="*", help="of a bug, from 1 on")
    options = parser.parse_args()
    for number in options.number or range(1, len(BUGS) + 1):
        bug = BUGS[number - 1]
        days, violated, seed = 0.0, "", options.seed - 1
        while not violated and days < options.days:
            seed += 1
            simulated, violated = find(bug, seed, min(WORLD, options.days - days))
            days = round(days + simulated, 2)
        print(
            f"{number}. {bug.name}: {violated or 'not found'}, {days:.2f} days",
            flush=True,
        )
        record_result("planted", bug.name, days=days, by=violated, seed=seed)


def find(bug: Bug, seed: int, days: float) -> tuple[float, str]:
    """Return the simulated days, and the violated invariant or ""."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        for name in ("api_exporter", "simulation", "tests"):
            shutil.copytree(ROOT / name, Path(folder) / name)
        file = Path(folder) / "api_exporter" / bug.file
        file.write_text(planted(bug, file.read_text()))
        child = run(
            [
                *(sys.executable, "-m", "simulation"),
                *("--seed", str(seed), "--days", str(days)),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    passed = re.search(r"^seed \d+: ([\d.]+) days", child.stdout, re.MULTILINE)
    broken = re.search(r"^step \d+: ([^:]+)", child.stdout, re.MULTILINE)
    if passed is None:  # The simulation failed before an invariant was checked.
        error = (child.stderr.splitlines() or [""])[-1].partition(":")[0]
        return 0.0, error.rpartition(".")[2]
    return float(passed[1]), "" if broken is None else broken[1]


def planted(bug: Bug, text: str) -> str:
    """Return a file's text with the bug in it."""
    assert text.count(bug.right) == 1, bug.name
    return text.replace(bug.right, bug.wrong)


if __name__ == "__main__":
    main()

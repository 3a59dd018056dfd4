"""The world: the NetBird API, a machine with the exporter, and the events of both."""

import heapq
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from api_exporter.demo.server import tokens
from api_exporter.netbird.resources import RESOURCES
from api_exporter.settings.errors import ConfigurationError
from simulation.account import PATHS, Account
from simulation.disk import Disk, Killed
from simulation.exporter import Life, forget
from simulation.history import History
from simulation.knowledge import Knowledge
from simulation.logs import Lines
from simulation.machine import Machine
from simulation.upstream import Request, Upstream
from simulation.weather import Weather
from tests.parts import limiter

START = 1_800_000_000.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
QUARTER = 15 * MINUTE

NAMES = ("alpha", "beta", "gamma", "delta")
"""The accounts. beta and gamma share one token."""

LOGS = (("alpha", "events"), ("beta", "events"), ("alpha", "access"))
"""The account and kind of each log. Half of the worlds have the last one."""

LONGEST_END = 40.0
"""The most seconds that the exporter may take to end."""

_QUICK = (1, 2)
_SLOW = (5, 8, 12, 20)
"""Multiples of the usual intervals. Uneventful refreshes take most of the processor's
time and find least. So only one world of six has a quick account."""
_COLLECTORS = ("default", "default,memberships", "default,memberships,events")
_PERSONAL = ("false", "false", "true", "hostname,city", "email,connection_ip")
_DETAIL = ("all", "all", "none", "groups:All", "groups:nobody,Engineering")
_AGES = ("", "", "1m", "10m", "2h")
_LIMITS = ((30, 60), (60, 120), (120, 1200))


class World:
    """A simulated world, derived from a seed.

    Args:
        folder: the exporter's disk.

    Attributes:
        step: the number of steps so far.
        life: the running exporter; None while it is down.
        stated: the rate limit of the shared token, if the settings have it.
        offset: seconds by which the wall clock is ahead of the steady clock.
        jumped: the last jump of the wall clock, in seconds of the clock.
        `asked`: requests that no invariant has checked yet.
        left_over: objects that remained after an exporter's end.
        logs: the lines of the log files.
        disturbed: the last disturbance of the disk, the wall clock or the size, in
            seconds of the clock.
        uncertain: ids of rows and events that may be missing, because the wall clock
            was wrong or a cursor was lost.
        troubled: the end of the last trouble of each account, in seconds of the clock.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed = seed
        self._now = 0.0
        self.offset = START
        self.jumped = -DAY
        self.step = 0
        self.days = 0.0
        self.folder = folder
        self.history = History(self.seconds, folder)
        self._chance = self.random("world")
        self._compute_chance = self.random("compute")
        self._plan: list[tuple[float, int, Callable[[], object]]] = []
        self._planned = 0
        self.life: Life | None = None
        self.known: dict[str, Knowledge] = {}
        self.asked: list[Request] = []
        self.disk = Disk(folder, self.random("disk"))
        self.logs = {
            f"{name}.{kind}": Lines(folder / f"{name}.{kind}.log")
            for name, kind in LOGS[: self.random("logs").choice((2, 3))]
        }
        self.left_over: list[str] = []
        self.disturbed = 0.0
        self.uncertain: set[str] = set()
        self._latest = 0.0  # The latest time of the wall clock before it was set.
        self.troubled = dict.fromkeys(NAMES, 0.0)
        self.weather = Weather(
            self.random("weather"), NAMES, tuple(PATHS), self.seconds
        )
        self._accounts = {
            name: Account(name, str(seed), self.now, self.truth, agents=name == "delta")
            for name in NAMES
        }
        self.upstream = Upstream(
            self.random("upstream"),
            self._accounts.values(),
            self.weather,
            seconds=self.seconds,
            now=self.truth,
            observe=self._asked,
        )
        self._secrets = iter(tokens(2000).values())
        self._settle()
        self._befall()

    def random(self, what: str) -> Random:
        return Random(f"{self._seed}/{what}")

    def seconds(self) -> float:
        """Return seconds of the steady clock."""
        return self._now

    def now(self) -> float:
        """Return seconds of the wall clock since the epoch."""
        return self._now + self.offset

    def truth(self) -> float:
        """Return seconds since the epoch of a wall clock that never jumps."""
        return self._now + START

    def _asked(self, request: Request) -> None:
        self.asked.append(request)
        self.history.note(
            "request", f"{request.account} {request.path} {request.state}"
        )

    # Initial state

    def _settle(self) -> None:
        """Create tokens, limits and settings."""
        chance = self.random("settings")
        (self.folder / "accounts").mkdir()
        self.environ = {
            "UPSTREAM_API_URL": "http://10.0.0.1",
            "UPSTREAM_PROXY": "none",
            "LISTEN_ADDRESS": "127.0.0.1:8080",
            "ACCOUNTS_DIR": str(self.folder / "accounts"),
        }
        self.stated = chance.choice((None, *_LIMITS))
        quick = chance.choice((*NAMES, *[""] * 20))
        for name in NAMES:
            pace = chance.choice(_QUICK if name == quick else _SLOW)
            lines = {
                "UPSTREAM_API_TOKEN_FILE": f"../{self._token_file(name).name}",
                "REFRESH_INTERVALS": _intervals(pace),
                "COLLECTORS": chance.choice(_COLLECTORS),
                "EXPOSE_PERSONAL_DATA": chance.choice(_PERSONAL),
                "PEER_DETAIL": chance.choice(_DETAIL),
                "METRICS_MAX_AGE": chance.choice(_AGES),
                "HTTP_TIMEOUT": chance.choice(("30s", "30s", "10s")),
                "API_RETRY_ATTEMPTS": chance.choice(("3", "3", "1")),
            }
            for kind, setting in (("events", "EVENTS"), ("access", "ACCESS_LOG")):
                if f"{name}.{kind}" in self.logs:
                    lines[f"{setting}_FILE"] = f"../{name}.{kind}.log"
                    if kind == "access":
                        lines["ACCESS_LOG_REQUESTS_PER_MINUTE"] = "1"
            if name == "gamma":
                lines["UPSTREAM_ACCOUNT"] = "gamma"
            if name in {"beta", "gamma"} and self.stated:
                lines["UPSTREAM_RATE_LIMIT"] = "/".join(map(str, self.stated))
            text = "".join(f"{key}={value}\n" for key, value in lines.items() if value)
            (self.folder / "accounts" / f"{name}.conf").write_text(text)
        for name in ("alpha", "beta", "delta"):
            self._new_token(name)
        self._limit()

    def _token_file(self, name: str) -> Path:
        return self.folder / f"{'beta' if name == 'gamma' else name}.token"

    def _new_token(self, name: str) -> str:
        """Replace a token. The one before becomes invalid."""
        file = self._token_file(name)
        away = file.with_name(f"{file.name}.away")
        before = next((f.read_text() for f in (file, away) if f.exists()), "")
        names = ["beta", "gamma"] if file.stem == "beta" else [name]
        token = next(self._secrets)
        self.upstream.tokens.pop(before, None)
        self.upstream.tokens[token] = names
        if limit := self.upstream.limits.pop(before, None):
            self.upstream.limits[token] = limit
        file.write_text(token)
        self._trouble(*names)
        return f"another one for {' and '.join(names)}"

    def _limit(self) -> str:
        self.upstream.limits.clear()
        self._trouble(*NAMES)
        for token, names in self.upstream.tokens.items():
            limit = self._chance.choice((None, None, (6, 30), (20, 60), (60, 300)))
            if len(names) > 1 and self.stated:
                limit = self.stated
            if limit is not None:
                self.upstream.limits[token] = limiter(*limit)
        return str(sorted(names[0] for names in self.upstream.tokens.values()))

    # Events

    def _befall(self) -> None:
        for kind, mean, act in (
            ("weather", 2 * HOUR, self._worsen),
            ("records", 6 * MINUTE, self._change),
            ("size", 2 * DAY, self._resize),
            ("limit", DAY, self._limit),
            ("token", DAY, lambda: self._new_token(self._chance.choice(NAMES))),
            ("SIGTERM", 12 * HOUR, self._terminate),
            ("SIGKILL", 5 * HOUR, self._kill),
            ("SIGHUP", 8 * HOUR, self._reload),
            ("clock", 8 * HOUR, self._jump),
            ("disk", 8 * HOUR, self._fill),
            ("rotation", 6 * HOUR, self._rotate),
            ("file", 8 * HOUR, self._lose),
            ("events", 10 * MINUTE, self._audit),
            ("rows", 6 * MINUTE, self._row),
        ):
            self._again(kind, mean, act)

    def _again(self, kind: str, mean: float, act: Callable[[], str]) -> None:
        def happen() -> None:
            self.history.note(kind, act())
            self._again(kind, mean, act)

        self.plan(self._chance.expovariate(1 / mean), happen)

    def bodies(self) -> Iterator[bytes]:
        for account in self._accounts.values():
            yield from account.bodies()
        for known in self.known.values():
            yield from known.held()
        yield from self.upstream.bodies()

    def account(self, name: str) -> Account:
        return self._accounts[name]

    def plan(self, delay: float, act: Callable[[], object]) -> None:
        self._planned += 1
        heapq.heappush(self._plan, (self._now + delay, self._planned, act))

    def _worsen(self) -> str:
        spell = self.weather.worsen()
        self.plan(spell.end - self._now, self.weather.improve)
        self._trouble(*([spell.account] if spell.account else NAMES), until=spell.end)
        return str(spell)

    def _change(self) -> str:
        account = self._accounts[self._chance.choice(NAMES)]
        return f"{account.name}: {account.change()}"

    def _resize(self) -> str:
        account = self._accounts[self._chance.choice(NAMES)]
        act = self._chance.choice((account.tenfold, account.vanish))
        self.disturbed = self._now
        lasting = self._chance.expovariate(1 / HOUR)
        self.plan(lasting, lambda: self._usual(account))
        return f"{account.name}: {act()}"

    def _audit(self) -> str:
        account = self._accounts[self._chance.choice(NAMES)]
        account.events.add(self._chance.choice((*[1] * 6, 2, 2, 3, 5, 12, 120)))
        if f"{account.name}.events" not in self.logs:
            account.events.forget(account.events.told)
        return f"{account.name}: {account.events.told}"

    def _row(self) -> str:
        requests = self._accounts["alpha"].requests
        before = requests.told
        requests.add(self._chance.choice((1, 1, 1, 2, 5, 20, 250)))
        # The exporter skips rows older than the last one read, and logs that.
        if abs(self.offset - START) > 30.0 or self.now() < self._latest:
            new = range(before + 1, requests.told + 1)
            self.uncertain |= {f"row-{number}" for number in new}
        return str(requests.told)

    def _jump(self) -> str:
        """Set the wall clock wrong, and right some time later."""
        ahead = self._chance.choice((1, 5, 60, HOUR, DAY)) * self._chance.uniform(-1, 1)
        self._set(ahead)
        self.plan(self._chance.expovariate(1 / HOUR), lambda: self._set(0.0))
        return f"{ahead:.0f} s"

    def _set(self, ahead: float) -> None:
        self._latest = max(self._latest, self.now())
        self.offset, self.jumped = START + ahead, self._now
        self.disturbed = self._now

    def _fill(self) -> str:
        self.disk.full = True
        self.plan(self._chance.expovariate(1 / HOUR), self._empty)
        return "full"

    def _empty(self) -> None:
        self.disk.full = False
        self.disturbed = self._now

    def _rotate(self) -> str:
        """Rename a log file, and reload the exporter in half of the cases."""
        name = self._chance.choice(sorted(self.logs))
        file = self.logs[name].file
        cursor = file.with_name(f"{file.name}.cursor")
        # A restart without file and cursor writes all events again, as documented.
        if not cursor.exists() or '"last":null' in cursor.read_text():
            return f"not of {file.name}, which has no cursor"
        moved = self.logs[name].move(self.step)
        if self._chance.random() < 0.5:
            self._reload()
        return moved

    def _lose(self) -> str:
        """Remove a token's file for a while, or a cursor for ever."""
        if self._chance.random() < 0.3:
            name = self._chance.choice(sorted(self.logs))
            file = self.logs[name].file
            # Events with lower numbers than the last lines count as written.
            late = self._accounts[name.partition(".")[0]].events.late
            self.uncertain |= set(map(str, late))
            # Right after a rotation, only the cursor knows the written lines.
            if file.exists() and file.stat().st_size:
                file.with_name(f"{file.name}.cursor").unlink(missing_ok=True)
            return f"the cursor of {file.name}"
        file = self._token_file(self._chance.choice(NAMES))
        held = file.with_name(f"{file.name}.away")
        if file.exists():
            file.rename(held)
            self.plan(
                self._chance.expovariate(1 / HOUR),
                lambda: None if file.exists() else held.rename(file),
            )
        return file.name

    def _trouble(self, *names: str, until: float | None = None) -> None:
        until = self._now if until is None else until
        for name in names:
            self.troubled[name] = max(self.troubled[name], until)

    def _usual(self, account: Account) -> None:
        self.disturbed = self._now
        self.history.note("size", f"{account.name}: {account.usual()}")

    def _reload(self) -> str:
        if self.life is not None:
            self.life.reload()
        return ""

    # Processes of the exporter

    def start(self) -> None:
        """Start the exporter, or plan another attempt if a file is missing."""
        machine = Machine(self._now, self.upstream, self.disk.work, self._computing)
        try:
            self.life = Life(
                machine,
                self.environ,
                now=self.now,
                jitter=self.random(f"jitter {self.step}").random,
            )
        except ConfigurationError as error:  # A file is missing.
            self.history.note("start", f"in vain: {error}")
            self.plan(MINUTE, self.start)
            return
        self.history.note("start", "")
        self._trouble(*NAMES)
        for name, account in self._accounts.items():
            account.delivered.clear()
            self.known[name] = Knowledge(
                self.life.accounts[name],
                account,
                self.life.settings[name],
                self.random(f"{name} {self.step}"),
            )
        self.life.start()

    def _computing(self) -> float:
        chance = self._compute_chance
        return chance.uniform(0.0, chance.choice((0.0, 0.0, 0.01, 0.05, 0.05, 0.3)))

    def _terminate(self) -> str:
        life = self.life
        if life is None:
            return "nothing runs"
        life.end()
        end = self._now + LONGEST_END
        while life.machine.due() <= end:
            self._now = max(self._now, life.machine.due())
            try:
                life.machine.run(self._now)
            except Killed:
                self._down()
                return "killed while it ended"
        self.left_over += life.left_over()
        self.left_over += (f"file {name}" for name in self.disk.left_over())
        self._down()
        return f"ended at {self._now:.3f}"

    def _kill(self) -> str:
        if self.life is None:
            return "nothing runs"
        if self._chance.random() < 0.7:
            kinds = (name.partition(".")[2] for name in self.logs)
            kind = self._chance.choice(("", *kinds))
            self.disk.kill(kind)
            return f"in the next work with {kind or 'files'}"
        self._down()
        return ""

    def _down(self) -> None:
        self.life = None
        self.known.clear()
        self.upstream.under_way.clear()
        self.disk.down()
        forget()
        self.plan(self._chance.expovariate(1 / MINUTE), self.start)

    # Time

    def run(self) -> Iterator[int]:
        """Advance the time. Yield the number of every step."""
        while True:
            planned = self._plan[0][0]
            due = float("inf") if self.life is None else self.life.machine.due()
            at = max(self._now, min(planned, due))
            self._now = at
            self.step += 1
            if planned <= due:
                heapq.heappop(self._plan)[2]()
            else:
                assert self.life is not None
                try:
                    self.life.machine.run(at)
                except Killed:
                    self.history.note("SIGKILL", "within work with files")
                    self._down()
            yield self.step


def _intervals(pace: int) -> str:
    """Return the intervals of all resources, `pace` times as long as usual."""
    periods = {r.name: pace * r.period for r in RESOURCES if pace > 1}
    periods["events"] = 60.0 * pace
    return ",".join(f"{name}={period:g}s" for name, period in periods.items())


class Violation(Exception):
    """A violated invariant, with its name."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(name, words)
        self.name = name
        self.words = words

    def __str__(self) -> str:
        return f"{self.name}: {self.words}"

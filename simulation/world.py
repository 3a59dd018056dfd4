"""The world: the NetBird API, a machine with the exporter, and the events of both."""

import gc
import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from api_exporter.demo.server import tokens
from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.refresh.compute import SMALL_BYTES
from api_exporter.service import Configuration
from api_exporter.settings import environment
from api_exporter.settings.definitions import Settings
from api_exporter.settings.errors import ConfigurationError
from simulation.account import PATHS, Account
from simulation.disk import MAX_HANG_SECONDS, Disk, Killed
from simulation.exporter import RunningExporter
from simulation.history import History
from simulation.knowledge import Knowledge
from simulation.logs import LogFile
from simulation.machine import THREAD_SECONDS, Machine
from simulation.reloads import (
    AT_START,
    MISTAKE,
    QUICK,
    SLOW,
    VALUES,
    AccountFiles,
    intervals,
)
from simulation.upstream import Request, Upstream
from simulation.weather import WELL, Spell, Weather
from simulation.work import Administrator, Job
from tests.parts import limiter

START = 1_800_000_000.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
QUARTER = 15 * MINUTE

NAMES = ("alpha", "beta", "gamma", "delta")
"""The accounts."""

SHARING = {"beta", "gamma"}
"""The accounts that share one token."""

LOGS = (("alpha", "events"), ("beta", "events"), ("alpha", "access"))
"""The account and kind of each log. Half of the worlds have the last one."""

MAX_END_SECONDS = 40.0
"""The most seconds that the exporter may take to end."""

MAX_COMPUTE_SECONDS = 30.0
"""The longest computation, on a machine with much other work."""

_LIMITS = ((30, 60), (60, 120), (120, 1200))
_SMALL_BYTES = (0, 0, 4_000, SMALL_BYTES)
"""Most computations go through the thread, whose results come a random time later."""


class World:
    """A simulated world, derived from a seed.

    Args:
        folder: the exporter's disk.

    Attributes:
        step: the number of steps so far.
        exporter: the running exporter; None while it is down.
        stated_limit: the rate limit of the shared token, if the settings have it.
        offset: seconds by which the wall clock is ahead of the steady clock.
        jumped_at: the last jump of the wall clock, in seconds of the clock.
        unchecked: requests that no invariant has checked yet.
        left_over: objects that remained after an exporter's end.
        logs: the lines of the log files.
        disturbed_at: the last disturbance of the disk, the wall clock or the size, in
            seconds of the clock.
        uncertain: ids of rows and events that may be missing, because the wall clock
            was wrong or a cursor was lost.
        well_at: the end of each account's last trouble, in seconds of the clock.
        name_failures: the ends of failed look-ups, in seconds of the clock.
        trouble: the last request of each account without a good answer, likewise; that
            of "" had an invalid token.
        computed_at: the end of the last long computation.
        has_ended_process: whether objects of an ended process may remain.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed = seed
        self._now = 0.0
        self.offset = START
        self.jumped_at = -DAY
        self.step = 0
        self.folder = folder
        self.history = History(self.seconds, folder)
        self._chance = self.random("world")
        self._compute_chance = self.random("compute")
        self._name_chance = self.random("names")
        self.name_failures: list[float] = []
        self.trouble: dict[str, float] = {}
        self._overtaking: Callable[[], object] | None = None
        self.computed_at = -DAY
        self.has_ended_process = self._was_killed = False
        self._plan: list[tuple[float, int, Callable[[], object]]] = []
        self._planned = 0
        self._happened = Counter[str]()
        self.exporter: RunningExporter | None = None
        self.known: dict[str, Knowledge] = {}
        self.unchecked: list[Request] = []
        self.disk = Disk(folder, self.random("disk"))
        self.logs = {
            f"{name}.{kind}": LogFile(folder / f"{name}.{kind}.log")
            for name, kind in LOGS[: self.random("logs").choice((2, 3))]
        }
        self.other_logs = {
            name: LogFile(folder / f"{name}.other.log") for name in self.logs
        }
        self._removed_at: dict[str, float] = {}
        self._personal = {name: list[tuple[float, frozenset[str]]]() for name in NAMES}
        self.left_over: list[str] = []
        self.disturbed_at = 0.0
        self.uncertain: set[str] = set()
        self._latest = 0.0  # The latest time of the wall clock before it was set.
        self.well_at = dict.fromkeys(NAMES, 0.0)
        self.weather = Weather(
            self.random("weather"), NAMES, tuple(PATHS), self.seconds
        )
        self._accounts = {
            name: Account(name, str(seed), self.now, self.clock, agents=name == "delta")
            for name in NAMES
        }
        self.administrators = {
            name: Administrator(lambda account=account: account.records, self.clock)  # type: ignore[misc]
            for name, account in self._accounts.items()
        }
        self.upstream = Upstream(
            self.random("upstream"),
            self._accounts.values(),
            self.weather,
            seconds=self.seconds,
            now=self.clock,
            observe=self._on_request,
        )
        self._secrets = iter(tokens(2000).values())
        self._configure()
        self._plan_events()

    def random(self, what: str) -> Random:
        return Random(f"{self._seed}/{what}")

    def seconds(self) -> float:
        """Return seconds of the steady clock."""
        return self._now

    def now(self) -> float:
        """Return seconds of the wall clock since the epoch."""
        return self._now + self.offset

    def clock(self) -> float:
        """Return seconds since the epoch of a wall clock that never jumps."""
        return self._now + START

    def _on_request(self, request: Request) -> None:
        assert self.exporter is not None
        request.began = self.exporter.machine.request_began
        if request.state != WELL or PATHS.get(request.path) in {None, CURRENT_USER}:
            self.trouble[request.account] = self._now
        self.unchecked.append(request)
        self.history.note(
            "request", f"{request.account} {request.path} {request.state}"
        )

    # Initial state

    def _configure(self) -> None:
        """Create tokens, limits and settings."""
        chance = self.random("settings")
        (self.folder / "accounts").mkdir()
        self.environ = {
            "LOOKUP": "true",
            "UPSTREAM_API_URL": "http://10.0.0.1",
            "UPSTREAM_PROXY": "none",
            "LISTEN_ADDRESS": "127.0.0.1:8080",
            "ACCOUNTS_DIR": str(self.folder / "accounts"),
        }
        self.files = AccountFiles(
            self.folder / "accounts", self.environ, self.random("reloads")
        )
        self.stated_limit = chance.choice((None, *_LIMITS))
        quick = chance.choice((*NAMES, *[""] * 20))
        for name in NAMES:
            factor = chance.choice(QUICK if name == quick else SLOW)
            lines = {
                "UPSTREAM_API_TOKEN_FILE": f"../{self._token_file(name).name}",
                "REFRESH_INTERVALS": intervals(factor),
            }
            for setting in AT_START:
                lines[setting] = chance.choice(VALUES[setting])
            for kind, setting in (("events", "EVENTS"), ("access", "ACCESS_LOG")):
                if f"{name}.{kind}" in self.logs:
                    lines[f"{setting}_FILE"] = f"../{name}.{kind}.log"
                    if kind == "access":
                        lines["ACCESS_LOG_REQUESTS_PER_MINUTE"] = "1"
            if name == "gamma":
                lines["UPSTREAM_ACCOUNT"] = "gamma"
            if name in SHARING and self.stated_limit:
                lines["UPSTREAM_RATE_LIMIT"] = "/".join(map(str, self.stated_limit))
            self.files.lines[name] = lines
            self.files.write(name)
        for name in ("alpha", "beta", "delta"):
            self._new_token(name)
        self._choose_limits()

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
        self._disturb(*names)
        return f"another one for {' and '.join(names)}"

    def _choose_limits(self) -> str:
        self.upstream.limits.clear()
        self._disturb(*NAMES)
        for token, names in self.upstream.tokens.items():
            limit = self._chance.choice((None, None, (6, 30), (20, 60), (60, 300)))
            if len(names) > 1 and self.stated_limit:
                limit = self.stated_limit
            if limit is not None:
                self.upstream.limits[token] = limiter(*limit)
        return str(sorted(names[0] for names in self.upstream.tokens.values()))

    # Events

    def _plan_events(self) -> None:
        for kind, mean, action in (
            ("weather", 2 * HOUR, self._begin_failures),
            ("records", 6 * MINUTE, self._change_records),
            ("work", QUARTER, self._begin_job),
            ("size", 2 * DAY, self._resize),
            ("limit", DAY, self._choose_limits),
            ("token", DAY, lambda: self._new_token(self._chance.choice(NAMES))),
            ("SIGTERM", 12 * HOUR, self._terminate),
            ("SIGKILL", 5 * HOUR, self._kill),
            ("SIGHUP", 8 * HOUR, self._reload),
            ("clock", 8 * HOUR, self._jump_clock),
            ("disk", 8 * HOUR, self._fill_disk),
            ("hang", 6 * HOUR, self._hang_disk),
            ("names", 6 * HOUR, self._slow_down_names),
            ("reload", 3 * HOUR, self._change_settings),
            ("rotation", 6 * HOUR, self._rotate),
            ("file", 8 * HOUR, self._lose_file),
            ("compute", 6 * HOUR, self._overtake),
            ("events", 10 * MINUTE, self._add_events),
            ("rows", 6 * MINUTE, self._add_rows),
        ):
            self._plan_repeated(kind, mean, action)

    def _plan_repeated(self, kind: str, mean: float, action: Callable[[], str]) -> None:
        """Let an event happen again and again. Each has a chance of its own, so that
        what the exporter does changes no later event.
        """
        self._happened[kind] += 1
        chance = self.random(f"{kind} {self._happened[kind]}")

        def happen() -> None:
            self._chance = chance
            self.history.note(kind, action())
            self._plan_repeated(kind, mean, action)

        self.plan(chance.expovariate(1 / mean), happen)

    def bodies(self) -> Iterator[bytes]:
        for account in self._accounts.values():
            yield from account.bodies()
        for known in self.known.values():
            yield from known.held_bodies()
        yield from self.upstream.bodies()

    def account(self, name: str) -> Account:
        return self._accounts[name]

    def plan(self, delay: float, action: Callable[[], object]) -> None:
        self._planned += 1
        heapq.heappush(self._plan, (self._now + delay, self._planned, action))

    def permitted(self, name: str) -> list[frozenset[str]]:
        """Return the kinds of personal data that new lines of an account may contain.
        An account that was replaced may still write for a while. One that was removed
        meanwhile, or whose disk was full, completes its last batch afterwards: the
        access log's when all other resources are read.
        """
        found, before = self._personal[name], self._now - 3 * HOUR
        is_late = self.disk.is_troubled or self.disturbed_at > before
        while len(found) > 1 and not is_late and found[1][0] < before:
            del found[0]
        return [personal for _, personal in found]

    def _begin_failures(self) -> str:
        return str(self._worsen(self._chance))

    def _worsen(self, chance: Random, account: str | None = None) -> Spell:
        spell = self.weather.worsen(chance, account)
        self.plan(spell.end - self._now, self.weather.improve)
        self._disturb(*([spell.account] if spell.account else NAMES), until=spell.end)
        return spell

    def _change_records(self) -> str:
        account = self._accounts[self._chance.choice(NAMES)]
        return f"{account.name}: {account.change()}"

    def _begin_job(self) -> str:
        """Let an administrator work, in one of four cases with failures meanwhile."""
        chance = self.random(f"job {self._happened['work']}")
        account = self._accounts[chance.choice(NAMES)]
        job = self.administrators[account.name].begin(chance)
        self._continue(account, job, chance)
        if chance.random() < 0.25:
            failures = self.random(f"failures {self._happened['work']}")

            def worsen() -> None:
                spell = self._worsen(failures, account.name)
                self.history.note("weather", str(spell))

            self.plan(failures.uniform(0.0, MINUTE), worsen)
        return f"{account.name}: {job.kind}"

    def _continue(self, account: Account, job: Job, chance: Random) -> None:
        changed = next(job.steps, None)
        if changed is not None:
            account.note_change(*changed)
            pause = job.pause if job.is_regular else chance.uniform(0.0, job.pause)
            self.plan(pause, lambda: self._continue(account, job, chance))

    def _resize(self) -> str:
        account = self._accounts[self._chance.choice(NAMES)]
        action = self._chance.choice((account.grow, account.clear))
        self.disturbed_at = self._now
        seconds = self._chance.expovariate(1 / HOUR)
        self.plan(seconds, lambda: self._restore_size(account))
        return f"{account.name}: {action()}"

    def _add_events(self) -> str:
        account = self._accounts[self._chance.choice(NAMES)]
        account.events.add(self._chance.choice((*[1] * 6, 2, 2, 3, 5, 12, 120)))
        if f"{account.name}.events" not in self.logs:
            account.events.forget_up_to(account.events.last)
        return f"{account.name}: {account.events.last}"

    def _add_rows(self) -> str:
        requests = self._accounts["alpha"].requests
        before = requests.last
        requests.add(self._chance.choice((1, 1, 1, 2, 5, 20, 250)))
        # The exporter skips rows older than the last one read, and logs that.
        if abs(self.offset - START) > 30.0 or self.now() < self._latest:
            new = range(before + 1, requests.last + 1)
            self.uncertain |= {f"row-{number}" for number in new}
        return str(requests.last)

    def _jump_clock(self) -> str:
        """Set the wall clock wrong, and right some time later."""
        ahead = self._chance.choice((1, 5, 60, HOUR, DAY)) * self._chance.uniform(-1, 1)
        self._set_clock(ahead)
        self.plan(self._chance.expovariate(1 / HOUR), lambda: self._set_clock(0.0))
        return f"{ahead:.0f} s"

    def _set_clock(self, ahead: float) -> None:
        self._latest = max(self._latest, self.now())
        self.offset, self.jumped_at = START + ahead, self._now
        self.disturbed_at = self._now

    def _fill_disk(self) -> str:
        self.disk.full = True
        self.plan(self._chance.expovariate(1 / HOUR), self._free_disk)
        return "full"

    def _free_disk(self) -> None:
        self.disk.full = False
        self.disturbed_at = self._now

    def _hang_disk(self) -> str:
        """Let writes hang for a while, mostly with reloads meanwhile."""
        self.disk.hang_share = self._chance.choice((0.1, 0.5, 1.0))
        seconds = self._chance.expovariate(1 / (10 * MINUTE))
        self._plan_reloads(seconds)
        self.plan(seconds, self._heal_disk)
        return f"{self.disk.hang_share} for {seconds:.0f} s"

    def _plan_reloads(self, seconds: float) -> None:
        for _ in range(self._chance.randint(0, 3)):
            at = self._chance.uniform(0.0, seconds)
            self.plan(at, lambda: self.history.note("reload", self._change_settings()))

    def _slow_down_names(self) -> str:
        """Let look-ups of names take long, or fail, mostly with reloads meanwhile."""
        self.weather.slow_names = self._chance.choice((2.0, 10.0, 60.0))
        seconds = self._chance.expovariate(1 / (10 * MINUTE))
        self._plan_reloads(seconds)
        self._disturb(*NAMES, until=self._now + seconds + self.weather.slow_names)
        self.plan(seconds, self._speed_up_names)
        return f"up to {self.weather.slow_names:.0f} s for {seconds:.0f} s"

    def _speed_up_names(self) -> None:
        self.weather.slow_names = 0.0

    def _heal_disk(self) -> None:
        self.disk.hang_share = 0.0
        self.disturbed_at = self._now + MAX_HANG_SECONDS

    def _change_settings(self) -> str:
        """Change settings, and reload them."""
        name = self._chance.choice([n for n in NAMES if n not in self.files.removed])
        kinds: list[Callable[[], str]] = [lambda: self.files.change(name)] * 5
        kinds += [self.files.change_process, lambda: self._mistake(name)]
        kinds += [lambda: self._new_token(name), self._move_log]
        if len(self.files.removed) < len(NAMES) - 1:
            kinds += [lambda: self._remove(name)] * 2
        done = self._chance.choice(kinds)()
        self._reload()
        self._disturb(*NAMES)
        return done

    def _remove(self, name: str) -> str:
        """Remove an account. It comes back later."""
        self.files.remove(name)

        def restore() -> None:
            self.files.write(name)
            self.history.note("reload", f"{name} is back")
            self._reload()
            self._disturb(*NAMES)

        self.plan(self._chance.expovariate(1 / HOUR), restore)
        return f"{name} is removed"

    def _mistake(self, name: str) -> str:
        """Make a mistake in a file, which leaves the settings as they are."""
        self.files.write(name, MISTAKE)

        def correct() -> None:
            if name not in self.files.removed:
                self.files.write(name)

        self.plan(self._chance.expovariate(1 / (10 * MINUTE)), correct)
        return f"{name}: a mistake"

    def _move_log(self) -> str:
        """Move a log to another path, or back. Each path has its own cursor."""
        name = self._chance.choice(sorted(self.logs))
        account, _, kind = name.partition(".")
        if account in self.files.removed or self.disk.may_be_killed:
            return "no log moves"
        self.logs[name], self.other_logs[name] = (
            self.other_logs[name],
            self.logs[name],
        )
        self.logs[name].excused |= self.account(account).log(kind).unlisted()
        setting = "EVENTS_FILE" if kind == "events" else "ACCESS_LOG_FILE"
        self.files.lines[account][setting] = f"../{self.logs[name].file.name}"
        self.files.write(account)
        return f"{name} to {self.logs[name].file.name}"

    def _rotate(self) -> str:
        """Rename a log file, and reload the exporter in half of the cases."""
        name = self._chance.choice(sorted(self.logs))
        file = self.logs[name].file
        cursor = file.with_name(f"{file.name}.cursor")
        # A restart without file and cursor writes all events again, as documented.
        if not cursor.exists():
            return f"not of {file.name}, which has no cursor"
        moved = self.logs[name].rotate(self.step)
        if self._chance.random() < 0.5:
            self._reload()
        return moved

    def _lose_file(self) -> str:
        """Remove a token's file for a while, or a cursor for ever."""
        if self._chance.random() < 0.3:
            name = self._chance.choice(sorted(self.logs))
            file = self.logs[name].file
            # Events with lower numbers than the last lines count as written.
            delayed = self._accounts[name.partition(".")[0]].events.delayed
            self.uncertain |= set(map(str, delayed))
            # After a rotation, perhaps only the cursor knows the newest line.
            if self.logs[name].has_newest_line():
                file.with_name(f"{file.name}.cursor").unlink(missing_ok=True)
            return f"the cursor of {file.name}"
        file = self._token_file(self._chance.choice(NAMES))
        away = file.with_name(f"{file.name}.away")
        if file.exists():
            file.rename(away)
            delay = self._chance.expovariate(1 / HOUR)
            self.plan(delay, lambda: None if file.exists() else away.rename(file))
            token = away.read_text()
            for name in self.upstream.tokens[token]:
                if self.upstream.used.get(name) != token:  # not read yet
                    self._disturb(name, until=self._now + delay)
        return file.name

    def _disturb(self, *names: str, until: float | None = None) -> None:
        until = self._now if until is None else until
        for name in names:
            self.well_at[name] = max(self.well_at[name], until)

    def _restore_size(self, account: Account) -> None:
        self.disturbed_at = self._now
        self.history.note("size", f"{account.name}: {account.restore_size()}")

    def _reload(self) -> str:
        if self.exporter is not None:
            self.exporter.reload()
        return ""

    # Processes of the exporter

    def start(self) -> None:
        """Start the exporter, or plan another attempt if a file is missing."""
        machine = self._machine()
        try:
            self.exporter = RunningExporter(
                machine,
                self._configured(machine),
                read=self._settings,
                small_bytes=self._small_bytes(),
                now=self.now,
                jitter=self.random(f"jitter {self.step}").random,
            )
        except ConfigurationError as error:  # A file is missing.
            self.history.note("start", f"in vain: {error}")
            self.plan(MINUTE, self.start)
            return
        self.history.note("start", "")
        self._disturb(*NAMES)
        for account in self._accounts.values():
            account.delivered.clear()
        self.follow()
        self.exporter.start()

    def follow(self) -> None:
        """Notice accounts that a reload has replaced, added or removed."""
        if self.exporter is None:
            return
        for name in self.known.keys() - self.exporter.accounts.keys():
            removed = self.known.pop(name)
            self._removed_at[name] = self._now
            if name in SHARING:  # The other account still has the token's budget.
                for other in SHARING & self.known.keys():
                    known = self.known[other]
                    known.refused_at = max(known.refused_at, removed.refused_at)
        for name, reader in self.exporter.accounts.items():
            before = self.known.get(name)
            if before is None or before.network is not reader.network:
                self.known[name] = known = Knowledge(
                    reader,
                    self._accounts[name],
                    self.exporter.settings[name],
                    self.random(f"{name} {self.step}"),
                )
                known.replaced_at = self._now
                if before is not None:
                    known.adopt(before)
                away = self._now - self._removed_at.pop(name, self._now)
                since = [(at + away, kinds) for at, kinds in self._personal[name]]
                personal = reader.network.inventory.personal
                self._personal[name] = [*since, (self._now, personal)]
                self._disturb(name)

    def _machine(self) -> Machine:
        run, computing, look_up = self.disk.run, self._computing, self._look_up
        return Machine(self._now, self.upstream, run, computing, look_up)

    def _look_up(self) -> tuple[float, bool]:
        """See `Machine`."""
        chance = self._name_chance
        if not self.weather.slow_names:
            return THREAD_SECONDS, True
        self.weather.unreachable_at = self._now
        seconds = chance.uniform(0.0, self.weather.slow_names)
        is_found = chance.random() < 0.8
        if not is_found:
            self.name_failures.append(self._now + seconds)
        return seconds, is_found

    def _configured(self, _machine: Machine) -> Configuration:
        return Configuration(self._settings(), None, None)

    def _settings(self) -> Settings:
        return environment.read_settings(self.environ)

    def _small_bytes(self) -> int:
        return self.random(f"small {self.step}").choice(_SMALL_BYTES)

    def _computing(self) -> float:
        """Return the seconds of a computation. Another event may overtake it: one that
        was planned, or the expiry of a resource that is being refreshed.
        """
        chance = self._compute_chance
        seconds = chance.uniform(0.0, chance.choice((0.0, 0.0, 0.01, 0.05, 0.05, 0.3)))
        expires_in = min(
            (
                life.expires - self._now
                for known in self.known.values()
                for life in known.network.states.every.values()
                if life.began is not None
            ),
            default=DAY,
        )
        if expires_in < MAX_COMPUTE_SECONDS and chance.random() < 0.02:
            seconds = expires_in + chance.random()
        if self._overtaking is not None:
            overtaking, self._overtaking = self._overtaking, None
            seconds = chance.choice((0.3, 5.0, MAX_COMPUTE_SECONDS)) * chance.random()
            self.plan(seconds * chance.random(), overtaking)
        if seconds > 1.0:
            # The thread has one computation after the other.
            self.computed_at = max(self.computed_at, self._now) + seconds
        return seconds

    def _overtake(self) -> str:
        """Stop, kill or reload the exporter within its next computation."""
        kinds = {"stop": self._terminate, "kill": self._end, "reload": self._reload}
        kind = self._chance.choice(("stop", "kill", "reload"))
        self._overtaking = kinds[kind]
        return f"{kind} within the next computation"

    def _end(self) -> None:
        if self.exporter is not None:
            self._end_process()

    def _terminate(self) -> str:
        exporter = self.exporter
        if exporter is None:
            return "nothing runs"
        exporter.end()
        end = self._now + MAX_END_SECONDS
        while exporter.machine.due_at() <= end:
            self._now = max(self._now, exporter.machine.due_at())
            try:
                exporter.machine.run(self._now)
            except Killed:
                self._end_process()
                return "killed while it ended"
        self.left_over += exporter.left_over()
        if not self.disk.hanging:
            files = self.disk.descriptors.values()
            self.left_over += (f"file {name}" for name in files)
        self._end_process()
        self._was_killed = False
        return f"ended at {self._now:.3f}"

    def _kill(self) -> str:
        if self.exporter is None:
            return "nothing runs"
        if self._chance.random() < 0.7:
            kinds = (name.partition(".")[2] for name in self.logs)
            kind = self._chance.choice(("", *kinds))
            self.disk.kill(kind)
            return f"in the next work with {kind or 'files'}"
        self._end_process()
        return ""

    def _end_process(self) -> None:
        self.exporter = None
        self.known.clear()
        self.upstream.pending.clear()
        self.disk.close_all()
        self.has_ended_process = self._was_killed = True
        self._happened["end"] += 1
        chance = self.random(f"end {self._happened['end']}")
        self.plan(chance.expovariate(1 / MINUTE), self.start)

    def forget_ended_process(self) -> None:
        """Release its objects. Their finalizers run code that a killed process never
        runs: nothing that they log counts then.
        """
        self.has_ended_process = False
        self.history.is_deaf = self._was_killed
        gc.collect()
        self.history.is_deaf = False

    # Time

    def run(self) -> Iterator[int]:
        """Advance the time. Yield the number of every step."""
        while True:
            planned = self._plan[0][0]
            due = (
                float("inf")
                if self.exporter is None
                else self.exporter.machine.due_at()
            )
            at = max(self._now, min(planned, due))
            self._now = at
            self.step += 1
            if planned <= due:
                if self.exporter is not None:
                    self.exporter.machine.rightNow = at
                heapq.heappop(self._plan)[2]()
            else:
                assert self.exporter is not None
                try:
                    self.exporter.machine.run(at)
                except Killed:
                    self.history.note("SIGKILL", "within work with files")
                    self._end_process()
            yield self.step


class Violation(Exception):
    """A violated invariant: its name, and what is wrong."""

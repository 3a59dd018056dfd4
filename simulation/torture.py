"""Let each call of a short scenario fail once, with each error that it may have.

`python -m simulation.torture` tries everything, `--only TEXT` what a failure names.
"""

import argparse
import gc
import sys
import tempfile
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from traceback import format_exc
from typing import Any, ParamSpec, TypeVar

import bcrypt
from msgspec import Struct
from twisted.internet.interfaces import IHostnameResolver
from twisted.logger import globalLogBeginner, globalLogPublisher
from twisted.python.threadpool import ThreadPool

from api_exporter.daemon import threads
from api_exporter.daemon.threads import daemon_threads
from api_exporter.ports import Compute
from api_exporter.refresh.compute import ComputeThread
from api_exporter.service import Configuration, load_access
from api_exporter.settings import loader
from api_exporter.settings.definitions import Settings
from api_exporter.settings.options import Options
from simulation.faults import ERRORS, Faults, Site
from simulation.invariants import Checks
from simulation.logs import LogFile
from simulation.machine import Machine
from simulation.run import MEMORY_FOLDER
from simulation.world import LOGS, NAMES, Violation, World

P = ParamSpec("P")
T = TypeVar("T")

MAX_STEPS = 2
"""The steps in which a place fails."""

HOST = "netbird.example"
SEED = 54

ACCOUNT = """\
UPSTREAM_API_TOKEN_FILE=../{token}.token
{more}
"""

MORE = {
    "alpha": "EVENTS_FILE=../alpha.events.log\nACCESS_LOG_FILE=../alpha.access.log",
    "beta": "EVENTS_FILE=../beta.events.log",
    "gamma": "UPSTREAM_ACCOUNT=gamma",
    "delta": "COLLECTORS=default,memberships",
}

WEB = """\
basic_auth_users:
  user: {digest}
# {number}
"""

CLIENT_TOKEN = "torture-torture-torture"
LOGIN = b64encode(b"user:password").decode()


@cache
def digest() -> str:
    return bcrypt.hashpw(b"password", bcrypt.gensalt(4)).decode()


class Outcome(Struct, frozen=True):
    """The result of one run: its calls by site, and what was wrong."""

    sites: dict[Site, int]
    problem: str


class FragileMachine(Machine):
    """A machine whose calls may fail."""

    request_headers = f"Authorization: Basic {LOGIN}\r\n"

    def __init__(self, world: "FragileWorld") -> None:
        super().__init__(
            world.seconds(), world.upstream, lambda do: do(), lambda: 0.001
        )
        vars(threads)["getaddrinfo"] = self._look_up

        def in_pool(pool: ThreadPool, *args: Any) -> None:
            """Do the work of one of the exporter's pools, if its thread can start."""
            self.faults.check("thread", str(pool.name))
            in_compute = pool.name == "compute"
            own = self.compute_thread if in_compute else self.getThreadPool()
            own.callInThreadWithCallback(*args)

        setattr(ThreadPool, "callInThreadWithCallback", in_pool)  # noqa: B010
        self.faults = world.faults
        self.log_threads = daemon_threads(1, "logs")
        pool = daemon_threads(1, "compute")
        self.compute = self._fragile(ComputeThread(self, pool))  # type: ignore[arg-type]

    def _fragile(self, compute: Compute) -> Compute:
        def fragile(
            function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
        ) -> object:
            of: Any = function
            called, given = (
                (of.func, of.args) if isinstance(of, partial) else (of, args)
            )
            place = f"{called.__module__}.{called.__qualname__}"
            name = getattr(given[0], "name", "") if given else ""

            def run() -> T:
                self.faults.check("memory", f"{place} {name}".strip())
                return function(*args, **kwargs)

            return compute(run)

        return fragile  # type: ignore[return-value]

    def installNameResolver(  # noqa: N802 - Twisted's name
        self,
        nameResolver: IHostnameResolver,  # noqa: N803 - the same
    ) -> IHostnameResolver:
        self.nameResolver = nameResolver
        return nameResolver

    def _look_up(self, _host: str, port: int, *_: object) -> list[tuple[object, ...]]:
        self.faults.check("resolve", HOST)
        return [(2, 1, 6, "", ("192.0.2.7", port))]

    def get(self, path: str, encoding: str = "identity") -> tuple[int, bytes]:
        """Return status and body of a page, for a client with a password."""
        self._threads.quick = True  # They compare it.
        found = super().get(path, encoding)
        self._threads.quick = False
        return found


class FragileWorld(World):
    """A world in which one call fails, and nothing else happens."""

    def __init__(self, folder: Path, site: Site | None = None, name: str = "") -> None:
        self.faults = Faults(folder, site, name, self._on_fault)
        super().__init__(SEED, folder)
        self.logs, self.other_logs = (
            {f"{n}.{k}": LogFile(folder / f"{n}.{k}.{end}") for n, k in LOGS}
            for end in ("log", "other.log")
        )
        self._checks = Checks(self)

    def _on_fault(self) -> None:
        self.disturbed_at = self.trouble[""] = self.seconds()
        self.name_failures.append(self.seconds())
        self._disturb(*NAMES)

    def _plan_events(self) -> None:
        self.plan(5.0, self._plan_events)

    def _configure(self) -> None:
        (self.folder / "accounts").mkdir()
        lines = {
            "LISTEN_ADDRESS": ":8443",
            "UPSTREAM_API_URL": f"http://{HOST}",
            "ACCOUNTS_DIR": str(self.folder / "accounts"),
            "WEB_CONFIG_FILE": str(self.folder / "web.yml"),
            "WEB_BEARER_TOKENS_FILE": str(self.folder / "clients"),
            "UPSTREAM_PROXY": "none",
        }
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        (self.folder / "exporter.conf").write_text(text)
        self.stated_limit = None
        for name in NAMES:
            token = "beta" if name == "gamma" else name
            text = ACCOUNT.format(token=token, more=MORE[name])
            (self.folder / "accounts" / f"{name}.conf").write_text(text)
        for name in ("alpha", "beta", "delta"):
            self._new_token(name)
        self._write_files("1")

    def _write_files(self, number: str) -> None:
        for name, content in (
            ("web.yml", WEB.format(digest=digest(), number=number).encode()),
            ("clients", f"{CLIENT_TOKEN}\n{CLIENT_TOKEN}-{number}\n".encode()),
        ):
            (self.folder / name).write_bytes(content + b"\n" * len(number))

    def _machine(self) -> Machine:
        return FragileMachine(self)

    def _small_bytes(self) -> int:
        return 0  # The thread computes everything.

    def _configured(self, machine: Machine) -> Configuration:
        settings = self._settings()
        access = load_access(settings, machine)  # type: ignore[arg-type]
        return Configuration(settings, None, access)

    def _settings(self) -> Settings:
        options = Options()
        options["config"] = str(self.folder / "exporter.conf")
        return loader.load(options, {})

    def _end_process(self) -> None:
        super()._end_process()
        self._plan.clear()  # It starts again soon.
        self.plan(1.0, self.start)
        self._plan_events()

    # The scenario

    def play(self) -> None:
        """Play the scenario. Raise Violation if something is wrong."""
        for step, action, seconds in (
            ("start", self.start, 0.5),
            ("refresh", lambda: None, 40.0),
            ("scrape", self.scrape, 1.0),
            ("reload", self._replace_files, 40.0),
            ("scrape again", self.scrape, 1.0),
            ("rows", self._add, 100.0),
        ):
            self.faults.step = step
            action()
            self._run_until(self.seconds() + seconds)
        self._check_refreshed()
        self.faults.step = "stop"
        self._add()
        self._run_until(self.seconds() + 61.0)
        self._terminate()
        self.faults.counting = False
        self._run_until(self.seconds() + 100.0)
        self._check_refreshed()
        self._terminate()

    def _run_until(self, at: float) -> None:
        counting = self.faults.counting
        for _ in self.run():
            self.faults.counting = False
            self._checks.check()
            self.faults.counting = counting
            if self.seconds() >= at:
                break

    def scrape(self) -> None:
        if self.exporter is not None:
            self.exporter.machine.get("/metrics")
            self.exporter.machine.get("/metrics?account=alpha", "gzip")
            self.exporter.machine.get("/?account=alpha")

    def _replace_files(self) -> None:
        self._new_token("alpha")
        self._write_files("22")
        self._reload()

    def _add(self) -> None:
        for name in ("alpha", "beta"):
            self.account(name).events.add(3)
        self.account("alpha").requests.add(5)

    def _check_refreshed(self) -> None:
        if self.exporter is None:
            raise Violation("refreshes: the exporter does not run")
        for name, known in self.known.items():
            for resource, freshness in known.network.states.items():
                if freshness.error is not None or freshness.ended_at is None:
                    raise Violation(f"refreshes: {name}: {resource}: {freshness}")
        counting, self.faults.counting = self.faults.counting, False
        for path in ("/ready", "/metrics", "/"):
            if (found := self.exporter.machine.get(path)[0]) != 200:
                raise Violation(f"refreshes: {path} is {found}")
        self.faults.counting = counting


def play(site: Site | None = None, name: str = "") -> Outcome:
    """Play the scenario in a world of its own. Return its sites, and a problem."""
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        world = FragileWorld(Path(folder), site, name)
        globalLogPublisher.addObserver(world.history)
        problem = ""
        try:
            with world.faults.installed():
                world.play()
        except Violation as violation:
            problem = str(violation) + "\n" + "\n".join(world.history.recent)
        except Exception:  # noqa: BLE001 - reported like a violation
            problem = format_exc()
        finally:
            world.exporter = None
            gc.collect()
            globalLogPublisher.removeObserver(world.history)
        if not problem and world.history.errors:
            problem = f"errors: {world.history.errors[0]}"
        if site is not None and site not in world.faults.sites:
            problem = problem or "the call is not reached"
        return Outcome(world.faults.sites, problem)


def chosen(sites: Iterable[Site]) -> list[tuple[Site, str]]:
    """Return sites with each of their errors. A place counts in two steps at most."""
    seen = Counter[tuple[str, str]]()
    found = []
    for site in sites:
        seen[site.kind, site.place] += 1
        if seen[site.kind, site.place] <= MAX_STEPS:
            found += [(site, name) for name in ERRORS[site.kind]]
    return found


def _attempt(one: tuple[Site, str]) -> tuple[Site, str, str]:
    return (*one, play(*one).problem)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m simulation.torture", description=__doc__
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="places with a text")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    globalLogBeginner.beginLoggingTo([], redirectStandardIO=False, discardBuffer=True)
    begin = time.monotonic()
    calm = play()
    if calm.problem:
        sys.exit(f"without a failure: {calm.problem}")
    tried = [
        (site, name)
        for site, name in chosen(calm.sites)
        if options.only in f"{site.step}: {site.kind} at {site.place}: {name}"
    ]
    sites = Counter(site.kind for site in {site for site, _ in tried})
    visited, broken = Counter[str](), Counter[str]()
    with get_context("fork").Pool(options.processes) as pool:
        for site, name, problem in pool.imap_unordered(_attempt, tried):
            visited[site.kind] += 1
            broken[site.kind] += bool(problem)
            if problem:
                where = f"{site.step}: {site.kind} at {site.place}: {name}"
                print(f"{where}: {problem}\n", flush=True)
    for kind in visited:
        print(f"{kind}: {visited[kind]} at {sites[kind]} sites, broken {broken[kind]}")
    print(
        f"{sites.total()} sites, {visited.total()} failures, {broken.total()} broken,"
        f" {time.monotonic() - begin:.0f} s"
    )
    sys.exit(broken.total() > 0)


if __name__ == "__main__":
    main()

"""`--check` and `--once`: the printed report."""

import os
import signal
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from io import TextIOWrapper
from ipaddress import ip_address
from itertools import chain
from typing import TYPE_CHECKING, NoReturn, TypeVar

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger, globalLogBeginner

from api_exporter import service
from api_exporter.account import Account, SharedState
from api_exporter.checking.report_json import (
    CheckDocument,
    CheckedAccount,
    checked_account,
)
from api_exporter.checking.survey import (
    ResourceCheck,
    attention_lines,
    evaluate,
    read_resources,
    worst_status,
)
from api_exporter.daemon import logs
from api_exporter.daemon.life import start_error
from api_exporter.daemon.threads import install_name_resolver
from api_exporter.netbird.resources import UP
from api_exporter.ports import Now, UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.refresh.refused_paths import LEAK_SECONDS, MAX_REFUSED
from api_exporter.serving.listener import bind_problems
from api_exporter.settings.addresses import Address, Endpoint
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.options import Options
from api_exporter.subjects.watch import FindingList
from api_exporter.upstream.advice import advice
from api_exporter.upstream.fetcher import UNREACHABLE
from api_exporter.web.runbooks import runbooks_address

if TYPE_CHECKING:
    from api_exporter.access.configuration import AccessControl

log = Logger()

T = TypeVar("T")

UNREAD = 3
"""The status of an account whose peers could not be read."""

SIGPIPE_STATUS = 128 + signal.SIGPIPE
"""The exit status that a shell reports after SIGPIPE."""


async def run(reactor: PosixReactorBase, options: Options) -> None:
    """Read every enabled resource once; raise SystemExit(1) without the peers.

    With `--strict` the exit status is that of the worst account.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # a page is UTF-8 in any locale
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        await _run(reactor, options)
        sys.stdout.flush()
    except BrokenPipeError:  # as behind `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(SIGPIPE_STATUS) from None


async def _run(reactor: PosixReactorBase, options: Options) -> None:
    _, terminal = logs.to_streams("text", os.environ)
    globalLogBeginner.beginLoggingTo(
        [logs.LineObserver("warning", terminal, terminal)], redirectStandardIO=False
    )
    install_name_resolver(reactor)
    configured = service.configure(options, reactor)
    settings = configured.settings
    wanted = choose(settings.accounts, options["account"], single=options["once"])
    shared = SharedState(wanted.values(), settings.thresholds_file)
    runbooks = settings.runbooks_url or runbooks_address()
    accounts = service.make_accounts(
        replace(settings, accounts=wanted), reactor, shared
    ).accounts
    listening = () if options["once"] else settings.listen_address
    access = access_lines(configured.access, listening)
    problems = [*bind_problems(listening)]
    if not options["once"] and not options["json"]:
        for line in access:
            _print(f"access: {line}")
        for problem in problems:
            own = " (or does the exporter run already?)" if "in use" in problem else ""
            _print(f"listening: {problem}{own}")
    if configured.simulation is not None:
        configured.simulation.startService()
    if options["json"]:
        entries = {n: await _entry(a, reactor, runbooks) for n, a in accounts.items()}
        document = CheckDocument(
            access=access, listening_problems=problems, accounts=[*entries.values()]
        )
        _print_lines(document.text())
        statuses = {name: entry.strict_status for name, entry in entries.items()}
    else:
        statuses = {
            name: await _report(account, reactor, runbooks, once_only=options["once"])
            for name, account in accounts.items()
        }
        if settings.has_names and not options["once"] and options["account"] is None:
            _print_summary(statuses)
    if configured.simulation is not None:
        await maybeDeferred(configured.simulation.stopService)
    worst = max(statuses.values(), default=0)
    if options["strict"] and worst:
        raise SystemExit(worst)
    if worst == UNREAD:
        raise SystemExit(1)


def choose(
    accounts: Mapping[str, AccountSettings], wanted: str | None, *, single: bool
) -> Mapping[str, AccountSettings]:
    """Return all accounts, or the named one; raise SystemExit if it does not exist.

    Args:
        single: True if only one account is allowed.
    """
    names = ", ".join(accounts)
    if not accounts and (single or wanted is not None):
        raise start_error([_NO_ACCOUNTS], lasting=True)
    if wanted is not None and (wanted not in accounts or not wanted):
        known = (
            f"it must be one of {names}" if any(accounts) else "no account has a name"
        )
        problem = f"--account: {wanted!r} is not allowed: {known}"
        raise start_error([problem], lasting=True)
    if wanted is not None:
        return {wanted: accounts[wanted]}
    if single and len(accounts) != 1:
        problem = f"--once needs --account, which must be one of {names}"
        raise start_error([problem], lasting=True)
    return accounts


_NO_ACCOUNTS = "this shard has no accounts"


def _print_summary(statuses: Mapping[str, int]) -> None:
    _print("" if statuses else _NO_ACCOUNTS)
    for name, status in statuses.items():
        readable = status != UNREAD
        _print(f"{name}: {'ok' if readable else 'the peers cannot be read'}")


async def _report(
    account: Account, reactor: PosixReactorBase, runbooks: str, *, once_only: bool
) -> int:
    """Print the report of one account; return its status: 0, 1, 2 or UNREAD."""
    client, network = account.client, account.network
    if once_only:
        read = await print_metrics(network, read_resources(network, reactor))
        status = 0 if read else UNREAD
    else:
        if network.account:
            _print(f"\naccount: {network.account}")
        _print(f"NetBird API: {network.url}")
        _print(f"connection: {client.proxy_selection}")
        wait = reactor.callLater(WAIT_NOTICE, _print, f"waiting for {network.url}")
        unreachable, checks = await _reach(account, reactor)
        if wait.active():
            wait.cancel()
        if (shown := client.server_certificate) is not None:
            _print(f"certificate: {shown}")
        status = await print_check(unreachable, checks, network, account.now, runbooks)
    await account.stopService()
    return status


async def _entry(
    account: Account, reactor: PosixReactorBase, runbooks: str
) -> CheckedAccount:
    """Read one account; return its entry in the document."""
    unreachable, checks = await _reach(account, reactor)
    checked = [one async for one in checks]
    found = evaluate(account.network, checked, account.now())
    entry = checked_account(
        account,
        checked,
        found,
        unreachable=unreachable,
        strict_status=_status(found, checked),
        runbooks=runbooks,
    )
    await account.stopService()
    return entry


async def _reach(
    account: Account, reactor: PosixReactorBase
) -> tuple[str, AsyncIterator[ResourceCheck]]:
    """Return why the NetBird API is unreachable, or "", and the checks to be made."""
    network = account.network
    reach = partial(within, reactor, account.client.fetcher.reachability_problem)
    unreachable, checks = await try_reach(reach), read_resources(network, reactor)
    if unreachable:
        checks = only_first(checks, network, reactor)
    return unreachable, checks


def access_lines(
    access: "AccessControl | None", listening: Iterable[Address | Endpoint]
) -> list[str]:
    """Return a line for each authentication method.

    Without authentication, return a warning if other machines can connect, else no
    line.
    """
    if lines := access.describe() if access else []:
        return lines
    if all(map(_is_local, listening)):
        return []
    return ["no authentication: anyone who can connect can read all pages"]


def _is_local(listening: Address | Endpoint) -> bool:
    if isinstance(listening, Endpoint):
        return listening.startswith("unix:")
    try:
        return ip_address(listening.host).is_loopback
    except ValueError:
        return listening.host == "localhost"


async def try_reach(reach: Callable[[], Awaitable[str]]) -> str:
    """Return why the NetBird API is unreachable; an internal error is a reason, too."""
    try:
        return await reach()
    except CancelledError:
        raise
    except UpstreamError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - the table follows in any case
        log.failure("internal error while trying the connection")
        return "internal error, see the log"


MAX_WAIT = 9.0
"""Seconds for each of the two requests to an API that is out of reach."""

WAIT_NOTICE = 2.0
"""Seconds without a response after which the report says what it waits for."""


async def within(
    clock: IReactorTime, work: Callable[[], Coroutine[Deferred[object], object, T]]
) -> T:
    """Return the result of work; after MAX_WAIT seconds raise UpstreamError."""

    def fail(_: object, seconds: float) -> NoReturn:
        raise UpstreamError("timeout", f"no response within {seconds:g} s")

    return await Deferred.fromCoroutine(work()).addTimeout(MAX_WAIT, clock, fail)


async def only_first(
    checks: AsyncIterator[ResourceCheck], network: AccountNetwork, clock: IReactorTime
) -> AsyncIterator[ResourceCheck]:
    """Yield the check of the first resource alone, in a limited time."""

    async def first() -> ResourceCheck:
        return await anext(checks)

    try:
        yield await within(clock, first)
    except UpstreamError as error:
        resource = network.selection.resources[0]
        yield ResourceCheck(
            resource=resource, seconds=MAX_WAIT, error=error.without_traceback()
        )


async def print_check(
    unreachable: str,
    checks: AsyncIterator[ResourceCheck],
    network: AccountNetwork,
    now: Now,
    runbooks: str,
) -> int:
    """Print a table of the resources, advice about failures, and the findings.

    Args:
        unreachable: why the NetBird API cannot be reached; "" if it can.

    Returns:
        UNREAD without the peers, else the severity of the worst finding.
    """
    _print(f"reachable: {'no' if unreachable else 'yes'}")
    _print(_ROW.format("path", "outcome", "records", "ms"))
    checked = []
    async for one in checks:
        _print(_row(one))
        checked.append(one)
        if unreachable:  # the next ones would fail, too
            break
    _print(f"cost: {network.describe_cost()}")
    for line in chain.from_iterable(map(_record_lines, checked)):
        _print(line)
    for line in _failure_lines(unreachable, checked):
        _print(line)
    findings = evaluate(network, checked, now())
    for line in attention_lines(findings, now(), runbooks):
        _print(line)
    return _status(findings, checked)


def _failure_lines(unreachable: str, checked: Sequence[ResourceCheck]) -> Iterator[str]:
    """Yield a line for each kind of failure, and one about paths not requested."""
    failures: dict[str, tuple[UpstreamError, list[str]]] = {}
    for one in checked:
        if one.error is not None and not one.resource.optional:
            _, names = failures.setdefault(str(one.error), (one.error, []))
            names.append(one.resource.name)
    if unreachable and unreachable not in failures:
        yield f"not reachable at first: {unreachable}"
    given = set[str]()
    token_accepted = any(one.records is not None for one in checked)
    for error, names in failures.values():
        which = (
            ", ".join(names) if len(names) <= _MAX_NAMED else f"{len(names)} resources"
        )
        said = f"{which}: {str(error).rstrip('.')}."
        if (steps := advice(error, token_accepted=token_accepted)) not in given:
            given.add(steps)
            said += f" {steps}"
        request = f" Request id: {error.request_id}." if error.request_id else ""
        yield f"{said}{request}"
    if any(one.held_back for one in checked):
        refused = any(
            one.resource.name == UP and one.outcome == "auth" for one in checked
        )
        yield _ALL_HELD_BACK if refused else _HELD_BACK


_ALL_HELD_BACK = "held_back: no other path was requested, because the token is refused."
_HELD_BACK = (
    f"held_back: not requested. {MAX_REFUSED} other paths were refused, and more"
    " refusals at once look like a scan. The running exporter requests another path"
    f" every {LEAK_SECONDS:g} seconds."
)


def _record_lines(one: ResourceCheck) -> Iterator[str]:
    """Yield lines about rejected records, and about unknown fields and values."""
    name = one.resource.name
    for problem in one.record_errors:
        yield f"left out: {name}{problem}"
    if omitted := one.rejected - len(one.record_errors):
        yield f"left out: {omitted} more of {name}"
    if names := one.unknown.names():
        yield f"unknown to this version: {name}: {', '.join(names)}"


async def print_metrics(
    network: AccountNetwork, checks: AsyncIterator[ResourceCheck]
) -> bool:
    """Print the metrics of the NetBird API, as a scrape returns them.

    Returns:
        True if the peers could be read.
    """
    checked = []
    async for one in checks:
        checked.append(one)
        if one.error is not None and one.error.reason in UNREACHABLE:
            break  # the next ones would fail, too
    for one in checked:
        if one.error is not None and not one.resource.optional:
            sys.stderr.write(f"{one.resource.name}: {one.error}\n")
    _print_lines(network.text().decode())
    return _has_peers(checked)


_MAX_NAMED = 3
"""The maximum number of failed resources that a line names; it counts more."""

_ROW = "{:<34}  {:<12}  {:>7}  {:>7}"


def _row(one: ResourceCheck) -> str:
    records = "" if one.records is None else str(one.records)
    time = f"{1000 * one.seconds:.0f}"
    return _ROW.format(one.resource.path, one.outcome, records, time).rstrip()


def _status(found: FindingList, checked: list[ResourceCheck]) -> int:
    return worst_status(found, checked) if _has_peers(checked) else UNREAD


def _has_peers(checked: Sequence[ResourceCheck]) -> bool:
    return any(one.resource.name == UP and one.error is None for one in checked)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _print_lines(text: str) -> None:
    # Line by line: one large write raises no error if the reader closes the pipe.
    sys.stdout.writelines(text.splitlines(keepends=True))

"""`--check` and `--once`: the daemon's own first refreshes, and their report."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import TextIOWrapper
from ipaddress import ip_address
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from twisted.application.service import IService
from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import globalLogBeginner

from api_exporter import service
from api_exporter.account import Account, SharedState
from api_exporter.checking.first_refreshes import (
    MAX_SECONDS,
    UNREAD,
    first_refreshes,
    strict_status,
    unread,
)
from api_exporter.checking.health import running_at
from api_exporter.checking.service_user import user_lines
from api_exporter.daemon import logs
from api_exporter.daemon.process import standard_output, start_error
from api_exporter.daemon.threads import install_name_resolver
from api_exporter.refresh.network import AccountNetwork
from api_exporter.report import words
from api_exporter.report.account import account_entry
from api_exporter.report.document import (
    AccountEntry,
    Document,
    FindingEntry,
    ResourceEntry,
    document_of,
)
from api_exporter.report.verdict import STATE_MEANINGS
from api_exporter.serving.listener import bind_problems
from api_exporter.settings.addresses import Address, EndpointDescription
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.options import Options
from api_exporter.version import this_build
from api_exporter.web.runbooks import runbooks_address

if TYPE_CHECKING:
    from api_exporter.access.control import AccessControl


WAIT_NOTICE = 2.0
"""Seconds without a response after which the report says what it waits for."""


class CheckedAccount(Struct, frozen=True, kw_only=True):
    """An account of `--check`, beside its entry in the document of `/status.json`.

    Attributes:
        strict_exit_status: that of `--strict` for this account alone.
    """

    account: str
    strict_exit_status: int
    connection: str
    certificate: str | None


class CheckDocument(Struct, frozen=True, kw_only=True):
    """The output of `--check --json`; `status` is the document of `/status.json`."""

    schema: int = 2
    access: Sequence[str]
    user: Sequence[str]
    listening_problems: Sequence[str]
    accounts: Sequence[CheckedAccount]
    status: Document


async def run(reactor: PosixReactorBase, options: Options) -> None:
    """Read every enabled resource once; raise SystemExit(1) without the peers.

    With `--strict` the exit status is that of the worst account.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # a page is UTF-8 in any locale
        sys.stdout.reconfigure(encoding="utf-8")
    with standard_output():
        await _run(reactor, options)


async def _run(reactor: PosixReactorBase, options: Options) -> None:
    _, terminal = logs.to_streams("text", os.environ)
    observer = logs.LineObserver("warning", terminal, terminal)
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False)
    install_name_resolver(reactor)
    configured = service.configure(options, reactor)
    settings = configured.settings
    wanted = choose(settings.accounts, options["account"], single=options["once"])
    shared = SharedState(wanted.values(), settings.thresholds_file)
    runbooks = settings.runbooks_url or runbooks_address()
    every = service.make_accounts(replace(settings, accounts=wanted), reactor, shared)
    services: list[IService] = [*filter(None, [configured.simulation]), every]
    accounts = [*every.accounts.values()]
    networks = [account.network for account in accounts]
    access = access_lines(configured.access, settings.listen_address)
    observer.set_level("error")  # the report has what a refresh logs
    users = []
    if not options["demo"]:
        users = user_lines(partial(service.load, options, reactor, reload=True))
    if options["once"]:
        await _read(services, accounts, reactor)
        _print_metrics(networks[0])
    elif options["json"]:
        problems, _ = listening_lines(settings.listen_address)
        await _read(services, accounts, reactor)
        document = CheckDocument(
            access=access,
            user=users,
            listening_problems=problems,
            accounts=[*map(_checked, accounts)],
            status=document_of(
                [
                    account_entry(network, runbooks=runbooks, now=every.now())
                    for network in networks
                ],
                this_build().version,
                every.now(),
            ),
        )
        encoded = msgspec.json.format(msgspec.json.encode(document), indent=2)
        _print_text(encoded + b"\n")
    else:
        _print(f"access: {line}" for line in access)
        problems, running = listening_lines(settings.listen_address)
        _print(f"listening: {line}" for line in (*problems, *running))
        _print(f"user: {line}" for line in users)
        await _read(services, accounts, reactor, runbooks)
        if settings.has_named_accounts and options["account"] is None:
            _print(_summary(accounts))
    for one in reversed(services):
        await maybeDeferred(one.stopService)
    statuses = [*map(strict_status, networks)]
    if options["strict"] and any(statuses):
        raise SystemExit(max(statuses))
    if UNREAD in statuses:
        raise SystemExit(1)


async def _read(
    services: Iterable[IService],
    accounts: Iterable[Account],
    clock: IReactorTime,
    runbooks: str | None = None,
) -> None:
    """Start the services, and wait for the first refreshes of each account.

    Args:
        runbooks: their address; None to print no reports.
    """
    for one in services:
        one.startService()
    for account in accounts:
        if runbooks is None:
            await first_refreshes(account.network, clock)
            continue
        _print(_head(account))
        notice = [f"waiting for {account.network.url}"]
        wait = clock.callLater(WAIT_NOTICE, _print, notice)
        await first_refreshes(account.network, clock)
        if wait.active():
            wait.cancel()
        if (shown := account.client.server_certificate) is not None:
            _print([f"certificate: {shown}"])
        _print(report_lines(account.network, account.now(), runbooks))


def listening_lines(
    addresses: Sequence[Address | EndpointDescription],
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the problems of a start, and the exporter that has the ports, if any."""
    problems = [*bind_problems(addresses)]
    if any("in use" in problem for problem in problems) and (
        url := running_at(addresses)
    ):
        others = [problem for problem in problems if "in use" not in problem]
        return others, [f"an exporter runs at {url}"]
    return problems, []


def choose(
    accounts: Mapping[str, AccountSettings], wanted: str | None, *, single: bool
) -> Mapping[str, AccountSettings]:
    """Return all accounts, or the named one; raise SystemExit if it does not exist."""
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


def access_lines(
    access: "AccessControl | None", listening: Iterable[Address | EndpointDescription]
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


def _is_local(listening: Address | EndpointDescription) -> bool:
    if isinstance(listening, EndpointDescription):
        return listening.startswith("unix:")
    try:
        return ip_address(listening.host).is_loopback
    except ValueError:
        return listening.host == "localhost"


def _checked(account: Account) -> CheckedAccount:
    certificate = account.client.server_certificate
    return CheckedAccount(
        account=account.network.account,
        strict_exit_status=strict_status(account.network),
        connection=str(account.client.proxy_selection),
        certificate=None if certificate is None else str(certificate),
    )


def _head(account: Account) -> Iterator[str]:
    if account.network.account:
        yield f"\naccount: {account.network.account}"
    yield f"NetBird API: {account.network.url}"
    yield f"connection: {account.client.proxy_selection}"


def report_lines(network: AccountNetwork, now: float, runbooks: str) -> Iterator[str]:
    entry = account_entry(network, runbooks=runbooks, now=now)
    yield from resource_lines(entry)
    yield f"cost: {network.describe_cost()}"
    starting = {one.resource for one in entry.resources if one.state == "starting"}
    if names := [name for name in unread(network) if name in starting]:
        yield f"not read within {MAX_SECONDS:.0f} seconds: {', '.join(names)}"
    yield from problem_lines(entry, runbooks)


def _print_metrics(network: AccountNetwork) -> None:
    """Print the metrics as a scrape returns them, and failures to standard error."""
    for name, known in network.states.items():
        if known.error is not None:
            sys.stderr.write(f"{name}: {known.error}\n")
    _print_text(network.text())


def _summary(accounts: Sequence[Account]) -> Iterator[str]:
    yield "" if accounts else _NO_ACCOUNTS
    for account in accounts:
        is_unread = strict_status(account.network) == UNREAD
        state = "the peers cannot be read" if is_unread else "ok"
        yield f"{account.network.account}: {state}"


def _print_text(text: bytes) -> None:
    # Not splitlines(): a name may have other line ends, such as U+2028.
    _print(text.decode().split("\n")[:-1])


def _print(lines: Iterable[str]) -> None:
    # Line by line: one large write raises no error if the reader closes the pipe.
    for line in lines:
        sys.stdout.write(f"{line}\n")


_ROW = "{:<34}  {:<12}  {:>7}  {:>7}"


def resource_lines(entry: AccountEntry) -> Iterator[str]:
    yield f"reachable: {'yes' if entry.reachable else 'no'}"
    yield _ROW.format("path", "outcome", "records", "ms")
    for one in entry.resources:
        seconds = one.duration_seconds
        milliseconds = None if seconds is None else round(1000 * seconds)
        cells = ("" if n is None else n for n in (one.records, milliseconds))
        yield _ROW.format(one.path, one.reason or one.state, *cells).rstrip()


def problem_lines(entry: AccountEntry, runbooks: str) -> Iterator[str]:
    """Yield problems of reading, then all findings."""
    for one in entry.resources:
        yield from _record_lines(one)
    for failure in entry.failures:
        advice = f" {failure.advice}" if failure.advice else ""
        names = words.few(failure.resources)
        yield f"{names}: {failure.error.rstrip('.')}.{advice}"
    for state in ("waiting", "held_back"):
        if any(one.state == state for one in entry.resources):
            yield f"{state}: {STATE_MEANINGS[state]}."
    yield f"needs attention: {entry.no_findings or ''}".rstrip()
    yield from map(finding_line, entry.findings)
    if any(finding.alert for finding in entry.findings):
        yield f"what to do: see the section of the name in brackets in {runbooks}"
    if entry.unchecked:
        yield words.unchecked(entry)


def finding_line(finding: FindingEntry) -> str:
    parts = (
        f"{finding.severity}: {finding.sentence}",
        finding.when and f"– {finding.when}",
        finding.alert and f"[{finding.alert}]",
    )
    return " ".join(filter(None, parts))


def _record_lines(one: ResourceEntry) -> Iterator[str]:
    for problem in one.problems:
        yield f"left out: {one.resource}{problem}"
    if omitted := one.rejected - len(one.problems):
        yield f"left out: {omitted} more of {one.resource}"
    if one.unknown:
        yield f"unknown to this version: {one.resource}: {', '.join(one.unknown)}"

"""`--health --group`: the offline peers of a group, in the form of Nagios' plugins.

Fact: monitoring-plugins.org, guidelines: one line, `| label=value;warn;crit;min;max`,
and the exit statuses 0 to 3. A threshold of n there means an alert above n.
"""

import re
import ssl
import sys
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from api_exporter.checking.health_request import (
    NoRequest,
    Target,
    in_thread,
    parse_options,
    targets,
)
from api_exporter.netbird.elements import DECODE_ERRORS
from api_exporter.settings.errors import ConfigurationError

OK, WARNING, CRITICAL, UNKNOWN = range(4)
"""Exit statuses."""

WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")

GROUP_USAGE = (
    "usage: api-exporter --health --group GROUP [--warning N] [--critical N]"
    " [--account NAME] [--token-file FILE] [--config FILE] [URL [SECONDS]]"
)

OPTIONS = ("group", "warning", "critical", "account", "token-file", "config")


class GroupPeers(Struct, frozen=True):
    """The peers of a group in `/status.json`."""

    total: int
    offline: int


class StatusGroup(Struct, frozen=True):
    """A group in `/status.json`; without id and peers it does not exist."""

    id: str | None
    name: str
    peers: GroupPeers | None


class StatusAccount(Struct, frozen=True):
    """An account in `/status.json`. The groups are None while they are not known."""

    groups: list[StatusGroup] | None
    error: str | None
    last_refresh_age_seconds: int | None


class StatusDocument(Struct, frozen=True):
    """The parts of `/status.json` that this command reads."""

    accounts: list[StatusAccount]


MAX_STATUS_BYTES = 64 * 1024 * 1024


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Send the request, print one line, and return the exit status."""
    try:
        status, line = _check(arguments, environ)
    except NoRequest as error:
        status, line = UNKNOWN, str(error)
    except ConfigurationError as error:
        status, line = UNKNOWN, "; ".join(error.problems)
    sys.stdout.write(f"{WORDS[status]}: {line}\n")
    return status


def _check(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[int, str]:
    options, words = parse_options(arguments, OPTIONS, GROUP_USAGE)
    if "group" not in options or "".join(words).startswith("/"):
        raise NoRequest(GROUP_USAGE)
    limits = [_limit(options.get(name, "")) for name in ("warning", "critical")]
    if limits == [None, None]:
        limits[0] = 1
    headers = {}
    if "token-file" in options:
        headers["Authorization"] = f"Bearer {_token(Path(options['token-file']))}"
    query = {"account": options["account"]} if "account" in options else {}
    page = f"/status.json?{urlencode(query)}".rstrip("?")
    if words and not words[0].startswith("unix:"):
        words[0] = words[0].rstrip("/") + page
    found, seconds = targets(
        options.get("config"), words, environ, page=page, verified=bool(headers)
    )
    answer = in_thread(lambda: _ask(found, headers), seconds)
    if answer is None:
        raise NoRequest(f"{found[0].url}: no response within {seconds:g} s")
    if isinstance(answer, str):
        raise NoRequest(answer)
    return judge(answer, options["group"], *limits)


def _ask(found: Sequence[Target], headers: Mapping[str, str]) -> StatusDocument | str:
    """Return the document of the first target that responds, or what is wrong."""
    problem = ""
    for target in found:
        try:
            target.connection.request("GET", target.page, headers=dict(headers))
            response = target.connection.getresponse()
            body = response.read(MAX_STATUS_BYTES)
        except (OSError, HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, ssl.SSLError) else None
            reason = reason or getattr(error, "strerror", None) or repr(error)
            problem = f"{target.url}: {reason}"
            continue
        if response.status != 200:
            line = body[:200].decode("utf-8", "replace").partition("\n")[0]
            problem = f"{target.url}: {response.status}: {line}"
            if response.status == 400:  # plain HTTP to a TLS port
                continue
            return problem
        document = decode_status(body)
        return document or f"{target.url}: the response is not that of /status.json"
    return problem


def decode_status(body: bytes) -> StatusDocument | None:
    """Return a response of `/status.json`; None if it is anything else."""
    try:
        return msgspec.json.decode(body, type=StatusDocument)
    except DECODE_ERRORS:
        return None


def judge(
    document: StatusDocument,
    name: str,
    warning: int | None = None,
    critical: int | None = None,
) -> tuple[int, str]:
    """Return the exit status and the line.

    Args:
        name: the name or id of a group.
        warning: the number of offline peers from which on it is a warning.
        critical: likewise.
    """
    if len(document.accounts) != 1:
        return UNKNOWN, f"{len(document.accounts)} accounts: choose one with --account"
    [account] = document.accounts
    shown = _printable(name)
    if account.groups is None:
        why = account.error or "they have not been read yet"
        return UNKNOWN, f"group {shown}: the peers are not known: {_printable(why)}"
    same_named = [group for group in account.groups if name in {group.name, group.id}]
    if not same_named:
        return UNKNOWN, f"group {shown} is not in IMPORTANT_GROUPS of the exporter"
    known = [group.peers for group in same_named if group.peers is not None]
    if not known:
        return UNKNOWN, f"group {shown} does not exist"
    # The worst of several groups with the same name counts.
    worst = max(known, key=lambda peers: peers.offline)
    total, offline = worst.total, worst.offline
    status = OK
    for limit, worse in ((warning, WARNING), (critical, CRITICAL)):
        if limit is not None and offline >= limit:
            status = worse
    above = ";".join("" if n is None else str(n - 1) for n in (warning, critical))
    age = account.last_refresh_age_seconds
    return status, (
        f"group {shown}: {offline} of {total} peers offline, read {age} s ago"
        f" | offline={offline};{above};0;{total} age={age}s;;;0"
    )


def _limit(text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,6}", text):
        raise NoRequest(f"{text!r} is not a number of peers from 1 on; {GROUP_USAGE}")
    return int(text)


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a token"
        raise NoRequest(f"{path}: {reason}") from None
    if not re.fullmatch(r"[!-~]{1,4096}", token):
        raise NoRequest(f"{path}: it is not a token")
    return token


def _printable(text: str) -> str:
    """Return a text without line ends, and without `|`, which begins the numbers."""
    kept = (c if c.isprintable() and c != "|" else " " for c in text)
    return re.sub(r"nbp_\w+", "nbp_…", "".join(kept))

"""`--check --json`: the report as one document for programs."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from api_exporter.account import Account
from api_exporter.checking.survey import ResourceCheck
from api_exporter.subjects.watch import FindingList
from api_exporter.web.status.status_json import FindingEntry, finding_entry

CHECK_SCHEMA = 1
"""The version of the document's form. A new field does not change it."""


class CheckedResource(Struct, frozen=True, kw_only=True):
    """A resource.

    Attributes:
        state: ok, skipped, restricted, held_back, unsupported or failing.
    """

    resource: str
    path: str
    state: str
    records: int | None
    rejected: int
    reason: str | None
    error: str | None
    unknown: list[str]


class CheckedAccount(Struct, frozen=True, kw_only=True):
    """An account.

    Attributes:
        strict_status: the exit status of `--strict` for this account alone.
        unreachable: why the NetBird API cannot be reached, if so.
        unchecked: unread resources, because of which findings may be missing.
    """

    account: str
    strict_status: int
    url: str
    connection: str
    certificate: str | None
    unreachable: str | None
    requests_per_minute: float
    resources: list[CheckedResource]
    findings: list[FindingEntry]
    unchecked: tuple[str, ...]


class CheckDocument(Struct, frozen=True, kw_only=True):
    """All accounts, and what concerns the process: access, and unusable addresses."""

    schema: int = CHECK_SCHEMA
    access: Sequence[str]
    listening_problems: Sequence[str]
    accounts: list[CheckedAccount]

    def text(self) -> str:
        encoded = msgspec.json.encode(self)
        return f"{msgspec.json.format(encoded, indent=2).decode()}\n"


def checked_account(
    account: Account,
    checks: list[ResourceCheck],
    found: FindingList,
    *,
    unreachable: str,
    strict_status: int,
    runbooks: str,
) -> CheckedAccount:
    """Return the entry of an account."""
    client, network, now = account.client, account.network, account.now()
    certificate = client.server_certificate
    return CheckedAccount(
        account=network.account,
        strict_status=strict_status,
        url=network.url,
        connection=str(client.proxy_selection),
        certificate=None if certificate is None else str(certificate),
        unreachable=unreachable or None,
        requests_per_minute=round(network.requests_per_minute, 2),
        resources=[checked_resource(check, now) for check in checks],
        findings=[finding_entry(finding, runbooks) for finding in found.lines],
        unchecked=found.unknown,
    )


def checked_resource(check: ResourceCheck, now: float) -> CheckedResource:
    error = check.error
    return CheckedResource(
        resource=check.resource.name,
        path=check.resource.path,
        state=check.outcome if error is None else check.freshness(now).state(now),
        records=check.records,
        rejected=check.rejected,
        reason=None if error is None else error.reason,
        error=None if error is None else error.text_with_request_id,
        unknown=check.unknown.names(),
    )

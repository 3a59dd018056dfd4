"""The checked settings: frozen values, of the process and of each account."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from api_exporter.attention.thresholds import Thresholds
from api_exporter.collectors.choice import Choice
from api_exporter.settings.addresses import Address, Endpoint
from api_exporter.settings.credential import Token, TokenFile
from api_exporter.settings.parsers import STANDARD_OUTPUT
from api_exporter.settings.proxy import Proxy
from api_exporter.settings.reach import Reach, reach
from api_exporter.settings.shard import Shard
from api_exporter.settings.table import (
    EVENTS_CURSOR_FILE,
    EVENTS_FILE,
    OF_ACCOUNT,
    OF_PROCESS,
    SETTINGS,
    UPSTREAM_API_TOKEN,
    UPSTREAM_API_TOKEN_FILE,
)


class AccountSettings(Struct, frozen=True, kw_only=True):
    """What the operator wants of one account. Durations are in seconds.

    Attributes:
        name: empty where the environment tells of the only one.
        reach: what follows from all that is said of proxies and certificates.
        peer_detail: names and ids of groups; None for all peers, empty for none.
        important_groups: names and ids; empty for those of the thresholds.
    """

    name: str
    upstream_api_url: str
    upstream_api_token: Token | None
    upstream_api_token_file: TokenFile | None
    http_timeout: float
    api_retry_attempts: int
    upstream_account: str | None
    upstream_rate_limit: tuple[int, int] | None
    upstream_proxy: Proxy | Literal["none"] | None
    upstream_client_cert_file: Path | None
    upstream_client_key_file: Path | None
    upstream_ca_file: Path | None
    reach: Reach
    collectors: frozenset[str]
    refresh_intervals: Mapping[str, float]
    metrics_max_age: float | None
    page_max_bytes: int
    expose_personal_data: frozenset[str]
    peer_detail: frozenset[str] | None
    important_groups: tuple[str, ...]
    metrics_allow: tuple[str, ...]
    metrics_deny: tuple[str, ...]
    events_file: Path | None
    events_cursor_file: Path | None

    @property
    def events_cursor(self) -> Path:
        """Where the cursor is, if there is a file of events."""
        if self.events_cursor_file is not None:
            return self.events_cursor_file
        assert self.events_file not in {None, STANDARD_OUTPUT}  # where it is required
        assert self.events_file is not None
        return self.events_file.with_name(f"{self.events_file.name}.cursor")

    def choice(self) -> Choice:
        """Which families are wanted."""
        return Choice(
            allow=self.metrics_allow, deny=self.metrics_deny, detail=self.peer_detail
        )

    def grant(self) -> tuple[str, str]:
        """The same for accounts that one token of one upstream opens."""
        token = self.upstream_api_token
        if self.upstream_api_token_file is not None:
            try:
                token = self.upstream_api_token_file.read()
            except ValueError:  # it could be read a moment ago
                return self.upstream_api_url, str(self.upstream_api_token_file.path)
        assert token is not None  # one of the two is set
        return self.upstream_api_url, token.reveal()


class Settings(Struct, frozen=True, kw_only=True):
    """What the operator wants.

    Attributes:
        accounts: by name; without ACCOUNTS_DIR one that has none.
    """

    accounts: Mapping[str, AccountSettings]
    thresholds_file: Thresholds | None
    runbooks_url: str | None
    listen_address: tuple[Address | Endpoint, ...]
    metrics_path: str
    max_connections: int
    web_config_file: Path | None
    web_bearer_tokens_file: Path | None
    web_open_paths: frozenset[str]
    log_level: str
    log_format: str
    accounts_dir: Path | None
    shard: Shard | None
    demo_peers: int
    demo_accounts: int | None
    demo_rate_limit: tuple[int, int] | None

    @property
    def events_to_output(self) -> bool:
        """Whether standard output is for audit events."""
        return any(a.events_file == STANDARD_OUTPUT for a in self.accounts.values())

    @property
    def several(self) -> bool:
        """Whether accounts have names, however many there are."""
        return "" not in self.accounts


def process(environ: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    """Values of the settings that are no account's, by their names in lower case."""
    return {s.name.lower(): s.read(environ, problems) for s in OF_PROCESS}


def account(
    name: str,
    environ: Mapping[str, str],
    problems: list[str],
    place: Callable[[str], str] = lambda _: "",
) -> AccountSettings | None:
    """An account's, or None with more problems.

    Args:
        place: what a problem with the setting of that name begins with.
    """
    mine: list[str] = []
    values = {s.name.lower(): s.read(environ, mine, place(s.name)) for s in OF_ACCOUNT}
    first, second = (UPSTREAM_API_TOKEN, UPSTREAM_API_TOKEN_FILE)
    given = [s for s in (first, second) if environ.get(s.name, "").strip()]
    if not given:
        mine.append(
            f"{place(first.name)}{first.name} is not set: it must be {first.allowed},"
            f" or {second.name} {second.allowed}"
        )
    elif len(given) > 1:
        mine.append(
            f"{place(second.name)}{first.name} and {second.name} are both set: only one"
            " of them may be"
        )
    if values["events_file"] == STANDARD_OUTPUT and not values["events_cursor_file"]:
        mine.append(
            f"{place(EVENTS_CURSOR_FILE.name)}{EVENTS_CURSOR_FILE.name} is not set:"
            f" where {EVENTS_FILE.name} is -, it must be {EVENTS_CURSOR_FILE.allowed}"
        )
    found = reach(values, environ, mine, place)
    problems += mine
    return None if mine else AccountSettings(name=name, reach=found, **values)  # type: ignore[arg-type]


_SHORTEST_SECRET = 8
"""Characters: shorter ones would be found everywhere."""


def secrets_of(environ: Mapping[str, str]) -> set[str]:
    """What no problem may repeat."""
    values = {environ.get(s.name, "").strip() for s in SETTINGS if s.secret}
    return {value for value in values if len(value) >= _SHORTEST_SECRET}


def without_secrets(problems: Iterable[str], secrets: Iterable[str]) -> Iterator[str]:
    """A secret may stand in another variable, or in another account's file, too."""
    for problem in problems:
        hidden: str = problem
        for secret in secrets:
            hidden = hidden.replace(secret, "…")
        yield type(problem)(hidden)

"""Settings: from the environment's text to checked, frozen values.

Seconds and bytes throughout. All mistakes are found at once; none repeats the token.
"""

import re
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from api_exporter.settings import parsers
from api_exporter.settings.addresses import DEFAULT, Address, Endpoint, addresses
from api_exporter.settings.credential import NotYet, Token, TokenFile, token, token_file

T = TypeVar("T")

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")


class Passing(str):
    """A problem that waiting may mend."""

    __slots__ = ()


class SettingsError(Exception):
    """Everything that is wrong with the settings, a line each.

    Attributes:
        lasting: whether any of it stays wrong until somebody changes it.
    """

    def __init__(self, problems: list[str], *, lasting: bool) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.lasting = lasting


class Setting(Struct, Generic[T], frozen=True):
    """One variable of the environment.

    Attributes:
        default: as it would be written; None where the variable is required.
        allowed: what a value must be, for a person.
        parse: raises ValueError, with a hint or without words.
        secret: the value is never repeated.
    """

    name: str
    default: str | None
    allowed: str
    meaning: str
    parse: Callable[[str], T]
    secret: bool = False

    def read(self, environ: Mapping[str, str], problems: list[str]) -> T | None:
        """The value, or None with one problem more. An empty variable is unset."""
        text = environ.get(self.name, "").strip() or self.default
        if text is None:
            problems.append(f"{self.name} is not set: it must be {self.allowed}")
            return None
        try:
            return self.parse(text)
        except ValueError as error:
            value = "its value" if self.secret else repr(_masked(text))
            hint = f" ({_masked(str(error))})" if str(error) else ""
            problem = (
                f"{self.name}: {value} is not allowed: it must be {self.allowed}{hint}"
            )
            passing = isinstance(error, NotYet)
            problems.append(Passing(problem) if passing else problem)
            return None


def _masked(text: str) -> str:
    """Without a password in an address, or a token in the wrong place."""
    hidden, at, shown = text.rpartition("@")
    if at:
        scheme = re.match(r"(\w+://)?", hidden)
        assert scheme is not None  # it may be empty
        text = f"{scheme[0]}…@{shown}"
    return re.sub(r"nbp_\w+", "nbp_…", text)


_SHORTEST_SECRET = 8
"""Characters: shorter ones would be found everywhere."""


UPSTREAM_API_URL = Setting(
    "UPSTREAM_API_URL",
    None,
    "an http or https address without a path, such as https://api.netbird.io",
    "Base address of the management API.",
    parsers.url,
)
UPSTREAM_API_TOKEN = Setting(
    "UPSTREAM_API_TOKEN",
    "",
    "an access token",
    "Bearer token for the management API. Either this or `UPSTREAM_API_TOKEN_FILE` is"
    " required.",
    parsers.optional(token),
    secret=True,
)
UPSTREAM_API_TOKEN_FILE = Setting(
    "UPSTREAM_API_TOKEN_FILE",
    "",
    "a file that holds an access token and can be read",
    "File with the bearer token, read again for every request: replacing its content is"
    " enough. A systemd credential or a container secret will do.",
    parsers.optional(token_file),
)
LISTEN_ADDRESS = Setting(
    "LISTEN_ADDRESS",
    DEFAULT,
    "host:port, such as :8080, 127.0.0.1:8080 or [::1]:8080, or a Twisted endpoint"
    " (tcp, tcp6, ssl, unix or systemd) such as unix:/run/api-exporter.sock; several"
    " are separated by commas",
    "Where to serve; without a host, on all interfaces, IPv6 and IPv4.",
    addresses,
)
METRICS_PATH = Setting(
    "METRICS_PATH",
    "/metrics",
    "a path such as /metrics, other than /, /health, /ready, /sd and /debug",
    "Path of the metrics.",
    parsers.metrics_path,
)
LOG_LEVEL = Setting(
    "LOG_LEVEL",
    "info",
    "one of " + ", ".join(LOG_LEVELS),
    "The least important log lines that are written.",
    parsers.one_of(*LOG_LEVELS),
)
LOG_FORMAT = Setting(
    "LOG_FORMAT",
    "text",
    "one of " + ", ".join(LOG_FORMATS),
    "How log lines look: for people, or a JSON object each.",
    parsers.one_of(*LOG_FORMATS),
)
HTTP_TIMEOUT = Setting(
    "HTTP_TIMEOUT",
    "30s",
    "a duration such as 30s, 1m30s or 500ms",
    "Time for one attempt to read from the upstream, from connecting to the end.",
    parsers.duration,
)
API_RETRY_ATTEMPTS = Setting(
    "API_RETRY_ATTEMPTS",
    "3",
    "a whole number from 1 to 10",
    "Attempts in all, before a refresh counts as failed.",
    parsers.whole(1, 10),
)
COLLECTORS = Setting(
    "COLLECTORS",
    "default",
    "names of collectors, separated by commas",
    "What is published, and with it what is asked for. `default` stands for all but"
    " `memberships` and `events`: `default,memberships` adds to it.",
    parsers.collectors,
)
REFRESH_INTERVALS = Setting(
    "REFRESH_INTERVALS",
    "",
    "resource=duration pairs, separated by commas, such as peers=15s,groups=1m",
    "Time between two refreshes, for the resources that are named.",
    parsers.intervals,
)
METRICS_MAX_AGE = Setting(
    "METRICS_MAX_AGE",
    "",
    "a duration such as 10m",
    "How long metrics stay although they cannot be refreshed; without it 5 minutes or"
    " three refresh intervals of the resource, whichever is longer. Never less than one"
    " and a half intervals, or 45 s.",
    parsers.optional(parsers.duration),
)
EXPOSE_PERSONAL_DATA = Setting(
    "EXPOSE_PERSONAL_DATA",
    "false",
    "true, false, or a list such as hostname,city",
    "Which personal data labels may hold: all of it, none, or these of `email`, `name`,"
    " `hostname`, `connection_ip`, `city` and `serial_number`.",
    parsers.personal,
)
MAX_CONNECTIONS = Setting(
    "MAX_CONNECTIONS",
    "512",
    "a whole number from 1 to 65536",
    "Connections that there may be. For one more, the address that holds most of the"
    " idle ones loses one; where none is idle, every request but `/health` is answered"
    " with 503, and from 16 more on a connection is closed unanswered.",
    parsers.whole(1, 65536),
)
DEMO_PEERS = Setting(
    "DEMO_PEERS",
    "200",
    "a whole number from 0 to 100000",
    "Size of the simulated network of `--demo`, in peers.",
    parsers.whole(0, 100_000),
)

DEMO_RATE_LIMIT = Setting(
    "DEMO_RATE_LIMIT",
    "",
    "requests a minute and burst, such as 6/500",
    "A limiter like NetBird's for the simulated network of `--demo`; without it none.",
    parsers.optional(parsers.rate_limit),
)

SETTINGS = (
    UPSTREAM_API_URL,
    UPSTREAM_API_TOKEN,
    UPSTREAM_API_TOKEN_FILE,
    LISTEN_ADDRESS,
    METRICS_PATH,
    LOG_LEVEL,
    LOG_FORMAT,
    HTTP_TIMEOUT,
    API_RETRY_ATTEMPTS,
    COLLECTORS,
    REFRESH_INTERVALS,
    METRICS_MAX_AGE,
    EXPOSE_PERSONAL_DATA,
    MAX_CONNECTIONS,
    DEMO_PEERS,
    DEMO_RATE_LIMIT,
)
"""All there are, in the order of the documentation."""


class Settings(Struct, frozen=True, kw_only=True):
    """What the operator wants. Durations are in seconds."""

    upstream_api_url: str
    upstream_api_token: Token | None
    upstream_api_token_file: TokenFile | None
    listen_address: tuple[Address | Endpoint, ...]
    metrics_path: str
    log_level: str
    log_format: str
    http_timeout: float
    api_retry_attempts: int
    collectors: frozenset[str]
    refresh_intervals: Mapping[str, float]
    metrics_max_age: float | None
    expose_personal_data: frozenset[str]
    max_connections: int
    demo_peers: int
    demo_rate_limit: tuple[int, int] | None


def read(environ: Mapping[str, str]) -> Settings:
    """Check everything, then raise SettingsError once for all that is wrong."""
    problems: list[str] = []
    values = {s.name.lower(): s.read(environ, problems) for s in SETTINGS}
    given = [
        setting
        for setting in (UPSTREAM_API_TOKEN, UPSTREAM_API_TOKEN_FILE)
        if environ.get(setting.name, "").strip()
    ]
    if not given:
        problems.append(
            f"UPSTREAM_API_TOKEN is not set: it must be {UPSTREAM_API_TOKEN.allowed},"
            f" or UPSTREAM_API_TOKEN_FILE {UPSTREAM_API_TOKEN_FILE.allowed}"
        )
    elif len(given) > 1:
        problems.append(
            "UPSTREAM_API_TOKEN and UPSTREAM_API_TOKEN_FILE are both set: only one of"
            " them may be"
        )
    if problems:
        lasting = not all(isinstance(problem, Passing) for problem in problems)
        secret = environ.get(UPSTREAM_API_TOKEN.name, "").strip()
        if len(secret) >= _SHORTEST_SECRET:  # it may stand in another variable, too
            problems = [problem.replace(secret, "…") for problem in problems]
        raise SettingsError(problems, lasting=lasting)
    return Settings(**values)  # type: ignore[arg-type]

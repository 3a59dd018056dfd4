"""All settings there are: a field each, of an account or of the process.

The field `http_timeout` holds what HTTP_TIMEOUT means, and its row is what the
documentation says of it. The basic ones come first; seconds and bytes throughout.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from api_exporter.attention.thresholds import Thresholds
from api_exporter.collectors.metric_filter import MetricFilter
from api_exporter.settings import parsers
from api_exporter.settings.addresses import DEFAULT, Address, Endpoint, addresses
from api_exporter.settings.certificate import (
    ClientCertificateFiles,
    authorities_file,
    certificate_file,
    key_file,
)
from api_exporter.settings.proxy import Proxy, proxy_or_none
from api_exporter.settings.proxy_selection import ProxySelection
from api_exporter.settings.setting import setting, settings_of
from api_exporter.settings.shard import Shard, shard
from api_exporter.settings.token import Token, TokenFile, token, token_file

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")

ACCESS = "The front door"
"""The section whose settings say who may come in: without any of them all may."""


class AccountSettings(Struct, frozen=True, kw_only=True):
    """What the operator wants of one account: what its file may set, and its name.

    Attributes:
        name: empty where the environment tells of the only one.
        proxy_selection: what follows from all settings and variables of proxies.
        identity: who we are to a gateway that asks for it; None where it is nobody.
    """

    name: str
    proxy_selection: ProxySelection
    identity: ClientCertificateFiles | None
    upstream_api_url: str = setting(
        parsers.url,
        "an http or https address without a path, such as https://api.netbird.io",
        "Base address of the management API.",
        default=None,
        section="Upstream",
    )
    upstream_api_token: Token | None = setting(
        parsers.optional(token),
        "an access token",
        "Bearer token for the management API, best that of a service user with the role"
        " auditor. Either this or `UPSTREAM_API_TOKEN_FILE` is required.",
        secret=True,
    )
    upstream_api_token_file: TokenFile | None = setting(
        parsers.optional(token_file),
        "a file that holds an access token and can be read",
        "File with the bearer token, read again for every request: replacing its"
        " content is enough. A systemd credential or a container secret will do.",
        path=True,
    )
    http_timeout: float = setting(
        parsers.duration,
        "a duration such as 30s, 1m30s or 500ms",
        "Time for one attempt to read from the upstream, from connecting to the end.",
        default="30s",
    )
    api_retry_attempts: int = setting(
        parsers.whole(1, 10),
        "a whole number from 1 to 10",
        "Attempts in all, before a refresh counts as failed.",
        default="3",
    )
    upstream_account: str | None = setting(
        parsers.optional(parsers.account_id),
        "an account's id: letters, digits and - . _ ~",
        "Account of another that the token may read too, such as a tenant of a managed"
        " service provider: sent as `?account=` with every call.",
    )
    upstream_rate_limit: tuple[int, int] | None = setting(
        parsers.optional(parsers.rate_limit),
        "requests a minute and burst, such as 120/1200",
        "What the upstream grants to the token, where that is known. Where it is less"
        " than the refresh intervals need, they are stretched, the longest first.",
    )
    upstream_proxy: Proxy | Literal["none"] | None = setting(
        parsers.optional(proxy_or_none),
        "the address of an http or https proxy, such as http://proxy.example:3128 or"
        " http://user:password@proxy.example:3128, or none",
        "Proxy for the exporter alone, taken whatever `NO_PROXY` says; `none` goes"
        " without any. Without it `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` hold, by"
        " the rules of Go ([proxies](reach.md)).",
        section="The way to the upstream",
        secret=True,
    )
    upstream_client_cert_file: Path | None = setting(
        parsers.optional(certificate_file),
        "a PEM file with a certificate, that can be read",
        "Certificate for a gateway that wants one, and those that vouch for it. It is"
        " looked at for every new connection.",
        path=True,
    )
    upstream_client_key_file: Path | None = setting(
        parsers.optional(key_file),
        "a PEM file with a key that is not encrypted, that can be read",
        "The key of `UPSTREAM_CLIENT_CERT_FILE`, where that does not hold it, too.",
        path=True,
    )
    upstream_ca_file: Path | None = setting(
        parsers.optional(authorities_file),
        "a PEM file with certificates, that can be read",
        "Authorities that may vouch for the upstream and for an https proxy, in place"
        " of those that this machine or `SSL_CERT_FILE` trusts. It is looked at for"
        " every new connection.",
        path=True,
    )
    collectors: frozenset[str] = setting(
        parsers.collectors,
        "names of collectors, separated by commas",
        "What is published, and with it what is asked for. `default` stands for all"
        " but `memberships`, `drop_in` and `events`: `default,memberships` adds to it."
        " Peers and groups are asked for in any case.",
        default="default",
        section="What is shown",
    )
    refresh_intervals: Mapping[str, float] = setting(
        parsers.intervals,
        "resource=duration pairs, separated by commas, such as"
        " peers=15s,groups=1m,agent_consumption=off",
        "Time between two refreshes, for the resources that are named. `off` leaves one"
        " out, and with it all that is made of it; not so peers and groups.",
    )
    metrics_max_age: float | None = setting(
        parsers.optional(parsers.duration),
        "a duration such as 10m",
        "How long metrics stay although they cannot be refreshed; without it 5 minutes"
        " or three refresh intervals of the resource, whichever is longer. Never less"
        " than one and a half intervals, or 45 s.",
    )
    page_max_bytes: int = setting(
        parsers.whole(1, 2**40),
        "a whole number from 1 to 1099511627776",
        "The longest text that an account's page may have, without compression. A"
        " refresh that would make it longer fails as `too_large`, and what was told"
        " before stays.",
        default="1073741824",
    )
    expose_personal_data: frozenset[str] = setting(
        parsers.personal,
        "true, false, or a list such as hostname,city",
        "Which personal data labels and logs may hold: all of it, none, or these of"
        " `email`, `name`, `hostname`, `connection_ip`, `city`, `serial_number`,"
        " `usage`, which is what each user has used of the Agent Network, and"
        " `access_log`.",
        default="false",
    )
    peer_detail: frozenset[str] | None = setting(
        parsers.peer_detail,
        "all, none, or groups: and names or ids of groups, such as"
        " groups:servers,routers",
        "Which peers have series of their own, in all families that have such. Numbers"
        " of peers are always of all. A group with a comma in its name is named by its"
        " id.",
        default="all",
    )
    important_groups: tuple[str, ...] = setting(
        parsers.groups,
        "names or ids of groups, separated by commas, such as servers,databases",
        "Groups of which each peer matters: the status page, `--check` and"
        " `api_exporter_attention` tell when one is offline, or a group is missing."
        " Without it those of `THRESHOLDS_FILE`, none as shipped. The alerts that"
        " `--rules` makes have those of the environment, not those of single accounts."
        " A group with a comma in its name is named by its id.",
    )
    metrics_allow: tuple[str, ...] = setting(
        parsers.patterns,
        "names of the collectors' metrics, separated by commas, such as"
        " netbird_api_peer*",
        "The only metrics that are published; `*` stands for anything. The exporter's"
        " own are always there.",
    )
    metrics_deny: tuple[str, ...] = setting(
        parsers.patterns,
        "names of the collectors' metrics, separated by commas, such as"
        " netbird_api_user_*",
        "Metrics that are not published, although they are allowed; `*` stands for"
        " anything. What nobody is told of is not computed, and what only that needs"
        " is not asked for.",
    )
    events_file: Path | None = setting(
        parsers.optional(parsers.output),
        "a file, or - for standard output",
        "Where to write the audit events, each once, as a line of JSON. They are asked"
        " for every minute then. With `-` all log lines go to standard error.",
        section="Audit events",
        path=True,
    )
    events_cursor_file: Path | None = setting(
        parsers.optional(parsers.file),
        "a file",
        "What was written of the audit events. Without it the name of `EVENTS_FILE`"
        " with `.cursor` behind it; required where that is `-`.",
        path=True,
    )

    access_log_file: Path | None = setting(
        parsers.optional(parsers.output),
        "a file, or - for standard output",
        "Where to write the access log of the reverse proxy: each request once, as a"
        " line of JSON. With `-` all log lines go to standard error.",
        section="Access log of the reverse proxy",
        path=True,
    )
    access_log_cursor_file: Path | None = setting(
        parsers.optional(parsers.file),
        "a file",
        "What was written of the access log. Without it the name of `ACCESS_LOG_FILE`"
        " with `.cursor` behind it; required where that is `-`.",
        path=True,
    )
    access_log_metrics: bool = setting(
        parsers.yes_or_no,
        "true or false",
        "Count the requests of the access log without writing it. With"
        " `ACCESS_LOG_FILE` they are counted in any case.",
        default="false",
    )
    access_log_requests_per_minute: int = setting(
        parsers.whole(1, 60),
        "a whole number from 1 to 60",
        "How often the upstream may be asked for the access log. Each answer has a"
        " hundred rows at most.",
        default="2",
    )

    @property
    def events_cursor(self) -> Path:
        """Where the cursor is, if there is a file of events."""
        return _beside(self.events_file, self.events_cursor_file)

    @property
    def access_log_cursor(self) -> Path:
        """Where the cursor is, if there is a file of the access log."""
        return _beside(self.access_log_file, self.access_log_cursor_file)

    @property
    def reads_access_log(self) -> bool:
        """Whether the access log is asked for."""
        return self.access_log_metrics or self.access_log_file is not None

    def choice(self) -> MetricFilter:
        """Which families are wanted."""
        return MetricFilter(
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
    thresholds_file: Thresholds | None = setting(
        parsers.optional(parsers.thresholds),
        "a JSON file of the form of `thresholds.json`, that can be read",
        "Numbers, severities and groups by which the status page, `--check` and"
        " `api_exporter_attention` tell what needs attention, and `--rules` makes the"
        ' alerts, such as `{"days": {"certificate_soon": 14}}`. What it does not name'
        " is as shipped. It is read at the start.",
        section="What is shown",
    )
    runbooks_url: str | None = setting(
        parsers.optional(parsers.page),
        "the http or https address of a page, such as https://wiki.example/netbird",
        "Where the runbooks are, for the links of the status page, of `--check` and of"
        " the alerts that `--rules` makes. Without it they are those of the exporter"
        " itself, at `/runbooks`.",
    )
    listen_address: tuple[Address | Endpoint, ...] = setting(
        addresses,
        "host:port, such as :8080, 127.0.0.1:8080 or [::1]:8080, or a Twisted endpoint"
        " (tcp, tcp6, ssl, unix or systemd) such as unix:/run/api-exporter.sock;"
        " several are separated by commas",
        "Where to serve; without a host, on all interfaces, IPv6 and IPv4.",
        default=DEFAULT,
        section="Serving",
    )
    metrics_path: str = setting(
        parsers.metrics_path,
        "a path such as /metrics, other than /, /health, /ready, /runbooks, /sd and"
        " /debug",
        "Path of the metrics.",
        default="/metrics",
    )
    max_connections: int = setting(
        parsers.whole(1, 65536),
        "a whole number from 1 to 65536",
        "Connections that there may be. For one more, the address that holds most of"
        " the idle ones loses one; where none is idle, every request but `/health` is"
        " answered with 503, and from 16 more on a connection is closed unanswered.",
        default="512",
    )
    web_config_file: Path | None = setting(
        parsers.optional(parsers.file),
        "a YAML file in the format of Prometheus' exporter-toolkit",
        "TLS, client certificates, passwords, headers and a limit of requests, for all"
        " addresses ([who may come in](security.md)). A change holds from the next"
        " connection on.",
        section=ACCESS,
    )
    web_bearer_tokens_file: Path | None = setting(
        parsers.optional(parsers.file),
        "a file with a token a line",
        "Bearer tokens that open the door, beside passwords or alone: each on a line"
        " of its own, as it is or as `sha256:` and its hash, and before it a name if"
        " you like, and `account=NAME,NAME` where it opens these accounts only. A"
        " change holds from the next request on.",
    )
    web_open_paths: frozenset[str] = setting(
        parsers.open_paths,
        "the path of the metrics, /sd, or both, separated by a comma",
        "What is served without a password or token although there are any; `/sd`"
        " stands for `/sd/accounts`, too.",
    )
    log_level: str = setting(
        parsers.one_of(*LOG_LEVELS),
        "one of " + ", ".join(LOG_LEVELS),
        "The least important log lines that are written.",
        default="info",
        section="Log",
    )
    log_format: str = setting(
        parsers.one_of(*LOG_FORMATS),
        "one of " + ", ".join(LOG_FORMATS),
        "How log lines look: for people, or a JSON object each.",
        default="text",
    )
    accounts_dir: Path | None = setting(
        parsers.optional(parsers.folder),
        "a folder with a NAME.conf for each account",
        "Serve several accounts: each `NAME.conf` holds the settings of one, and what"
        " it does not set comes from the environment.",
        section="Several accounts",
    )
    shard: Shard | None = setting(
        parsers.optional(shard),
        "a number and how many there are, such as 0/3, 1/3 and 2/3, or auto/3 where"
        " the host's name ends in the number",
        "Which of several processes this one is: each keeps a share of the accounts.",
    )
    demo_peers: int = setting(
        parsers.whole(0, 100_000),
        "a whole number from 0 to 100000",
        "Size of the simulated network of `--demo`, in peers.",
        default="200",
        section="Demonstration",
    )
    demo_accounts: int | None = setting(
        parsers.optional(parsers.whole(3, 500)),
        "a whole number from 3 to 500",
        "Simulate so many accounts, of different sizes, two of them with a dead token.",
    )
    demo_rate_limit: tuple[int, int] | None = setting(
        parsers.optional(parsers.rate_limit),
        "requests a minute and burst, such as 6/500",
        "A limiter like NetBird's for the simulated network of `--demo`; without it"
        " none.",
    )

    @property
    def to_output(self) -> str:
        """The setting that has standard output for the lines of a log, or ""."""
        for account in self.accounts.values():
            if account.events_file == parsers.STANDARD_OUTPUT:
                return "EVENTS_FILE"
            if account.access_log_file == parsers.STANDARD_OUTPUT:
                return "ACCESS_LOG_FILE"
        return ""

    @property
    def several(self) -> bool:
        """Whether accounts have names, however many there are."""
        return "" not in self.accounts


def _beside(file: Path | None, cursor: Path | None) -> Path:
    if cursor is not None:
        return cursor
    assert file is not None
    assert file != parsers.STANDARD_OUTPUT  # where a cursor is required
    return file.with_name(f"{file.name}.cursor")


OF_ACCOUNT = settings_of(AccountSettings)
"""Those that a file of ACCOUNTS_DIR may set."""

OF_PROCESS = settings_of(Settings)

SETTINGS = OF_ACCOUNT + OF_PROCESS

BY_NAME = {setting.name: setting for setting in SETTINGS}

SECTIONS = {
    section: [setting for setting in SETTINGS if setting.section == section]
    for section in dict.fromkeys(setting.section for setting in SETTINGS)
}
"""As the documentation has them."""

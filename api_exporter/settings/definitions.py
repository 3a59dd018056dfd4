"""All settings: one field each, of an account or of the process.

The field `http_timeout` holds the value of HTTP_TIMEOUT; its `setting` is also the
documentation. Basic settings come first. Units are seconds and bytes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from api_exporter.attention.thresholds import Thresholds
from api_exporter.collectors.collector import EVERYTHING, MetricFilter
from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.settings import parsers
from api_exporter.settings.addresses import (
    DEFAULT_LISTEN_ADDRESS,
    Address,
    EndpointDescription,
    parse_addresses,
)
from api_exporter.settings.certificate import (
    ClientCertificateFiles,
    authorities_file,
    certificate_file,
    key_file,
)
from api_exporter.settings.parsers import Shard, shard
from api_exporter.settings.proxy import Proxy, ProxySelection, proxy_or_none
from api_exporter.settings.setting import HTTPS, setting, settings_of
from api_exporter.settings.token import Token, TokenFile, parse_token, token_file
from api_exporter.subjects.events import AUDIT_EVENTS
from api_exporter.subjects.table import Selection, selection
from api_exporter.subjects.users import ACCESS_TOKENS

LOG_FORMATS = ("text", "json")

DEMO_FAULTS = ("none", "outage", "gateway", "token")

EVENTS_INTERVAL = 60.0
"""Seconds between refreshes of the audit events if they are written to a file."""

ACCESS_SECTION = "Authentication and TLS"
"""The section of settings that limit access. Without them, access is open."""


class AccountSettings(Struct, frozen=True, kw_only=True):
    """The settings of one account.

    Attributes:
        name: empty for the only account, which the environment defines.
        proxy_selection: the result of all settings and variables for proxies.
    """

    name: str
    proxy_selection: ProxySelection
    client_certificate: ClientCertificateFiles | None
    upstream_api_url: str = setting(
        parsers.url,
        "an http or https address without a path, such as https://api.netbird.io",
        "Base address of the NetBird management API.",
        default=None,
        section="NetBird API",
    )
    upstream_api_token: Token | None = setting(
        parsers.optional(parse_token),
        "an access token",
        "Access token for the NetBird API. Use a token of a service user with the"
        " role auditor. Set either this or `UPSTREAM_API_TOKEN_FILE`.",
        secret=True,
    )
    upstream_api_token_file: TokenFile | None = setting(
        parsers.optional(token_file),
        "a readable file that contains an access token",
        "File with the access token. The exporter reads the file for every request,"
        " so replace its content to change the token. A systemd credential or a"
        " container secret works.",
        is_path=True,
    )
    http_timeout: float = setting(
        parsers.duration,
        "a duration such as 30s, 1m30s or 500ms",
        "Time limit of one request to the NetBird API, from connecting to the last"
        " byte.",
        default="30s",
    )
    api_retry_attempts: int = setting(
        parsers.whole(1, 10),
        "a whole number from 1 to 10",
        "Attempts in all before a refresh counts as failed.",
        default="3",
    )
    upstream_account: str | None = setting(
        parsers.optional(parsers.account_id),
        "an account's id: letters, digits and - . _ ~",
        "Id of another account that the token may read, such as a customer of a"
        " managed service provider. The exporter sends it as `?account=` with every"
        " request.",
    )
    upstream_rate_limit: tuple[int, int] | None = setting(
        parsers.optional(parsers.rate_limit),
        "requests a minute and burst, such as 120/1200",
        "Requests that the NetBird API allows for the token, if you know them. If"
        " the refresh intervals need more, the exporter lengthens them, the access"
        " log's first, then the longest.",
    )
    upstream_proxy: Proxy | Literal["none"] | None = setting(
        parsers.optional(proxy_or_none),
        "the address of an http proxy, such as http://proxy.example:3128 or"
        " http://user:password@proxy.example:3128, or none",
        "Proxy for the exporter only. It is used even if `NO_PROXY` excludes the"
        " address. `none` means no proxy. If this is not set, the exporter follows"
        " `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` as Go programs do"
        " ([proxies](connections.md)).",
        secret=True,
    )
    upstream_client_cert_file: Path | None = setting(
        parsers.optional(certificate_file),
        "a readable PEM file with a certificate",
        "Client certificate for a gateway that requires one, followed by its"
        " intermediate certificates. A change applies to new connections after a"
        " minute.",
        is_path=True,
        needs=(HTTPS,),
    )
    upstream_client_key_file: Path | None = setting(
        parsers.optional(key_file),
        "a readable PEM file with a key that is not encrypted",
        "Private key of `UPSTREAM_CLIENT_CERT_FILE`. Not needed if that file also"
        " contains the key.",
        is_path=True,
    )
    upstream_ca_file: Path | None = setting(
        parsers.optional(authorities_file),
        "a readable PEM file with certificates",
        "Certificate authorities that the exporter trusts for the NetBird API. They"
        " replace those of this machine and of `SSL_CERT_FILE`. A change applies to"
        " new connections after a minute.",
        is_path=True,
        needs=(HTTPS,),
    )
    collectors: frozenset[str] = setting(
        parsers.collectors,
        "names of collectors, separated by commas",
        "Collectors that are enabled. They decide what the exporter requests and"
        " publishes. `default` means all except `memberships` and `events`;"
        " `default,memberships` adds one. The exporter always requests peers and"
        " groups.",
        default="default",
        section="Metrics and findings",
    )
    refresh_intervals: Mapping[str, float] = setting(
        parsers.intervals,
        "resource=duration pairs, separated by commas, such as"
        " peers=15s,groups=1m,agent_consumption=off",
        "Refresh interval of each named resource. Other resources keep their default."
        " `off` disables a resource and all metrics that need it. `peers`, `groups` and"
        " `current_user` cannot be disabled.",
    )
    metrics_max_age: float | None = setting(
        parsers.optional(parsers.duration),
        "a duration such as 10m",
        "How long the exporter keeps publishing metrics that it cannot refresh."
        " Without it, 5 minutes or three refresh intervals of the resource, whichever"
        " is longer. The minimum is 45 seconds or one and a half refresh intervals.",
    )
    list_max_records: int = setting(
        parsers.whole(1, 2**24),
        "a whole number from 1 to 16777216",
        "Maximum number of records of one list, such as the peers. A refresh of a"
        " longer list fails with `too_large`, and the previous metrics stay.",
        default="200000",
    )
    page_max_bytes: int = setting(
        parsers.byte_count(1, 2**40),
        "a whole number from 1 to 1099511627776",
        "Maximum length of an account's page in bytes, uncompressed. A refresh that"
        " makes the page longer fails with `too_large`, and the previous metrics"
        " stay.",
        default="268435456",
    )
    expose_personal_data: frozenset[str] = setting(
        parsers.personal,
        "true, false, or a list such as hostname,city",
        "Personal data that labels and logs may contain. `true` means all, `false`"
        " means none. A list names some of `email`, `name`, `hostname`,"
        " `connection_ip`, `city`, `serial_number`, `usage` and `access_log`. `usage`"
        " is each user's usage of the Agent Network.",
        default="false",
    )
    peer_detail: frozenset[str] | None = setting(
        parsers.peer_detail,
        "all, none, or groups: and names or ids of groups, such as"
        " groups:servers,routers",
        "Peers that have series of their own. Counts always include all peers. Use"
        " the id of a group whose name contains a comma.",
        default="all",
    )
    important_groups: tuple[str, ...] = setting(
        parsers.groups,
        "names or ids of groups, separated by commas, such as servers,databases",
        "Groups in which every peer matters. The status page, `--check` and"
        " `api_exporter_attention` report each offline peer and each missing group."
        " Alerts follow from these findings. Without it, the groups of"
        " `THRESHOLDS_FILE` apply; the default has none. Use the id of a group whose"
        " name contains a comma.",
    )
    metrics_deny: tuple[str, ...] = setting(
        parsers.patterns,
        "names of the collectors' metrics, separated by commas, such as"
        " netbird_api_user_*",
        "Metrics to leave out. `*` matches any text. The exporter does not compute"
        " these metrics. It does not request data that only these metrics need.",
    )
    events_file: Path | None = setting(
        parsers.optional(parsers.output),
        "a file, or - for standard output",
        "File for the audit events, one JSON object a line. The exporter requests"
        " events every minute and writes each event once. With `-`, all log lines go"
        " to standard error.",
        section="Audit events and access log",
        is_path=True,
        writes=True,
    )
    events_cursor_file: Path | None = setting(
        parsers.optional(parsers.file),
        "a file",
        "File that records which audit events are written. Without it, the name of"
        " `EVENTS_FILE` plus `.cursor`. Required if `EVENTS_FILE` is `-`.",
        is_path=True,
        writes=True,
        needs=("EVENTS_FILE",),
    )

    access_log_file: Path | None = setting(
        parsers.optional(parsers.output),
        "a file, or - for standard output",
        "File for the access log of the reverse proxy, one JSON object a line. The"
        " exporter writes each request once. With `-`, all log lines go to standard"
        " error.",
        is_path=True,
        writes=True,
    )
    access_log_cursor_file: Path | None = setting(
        parsers.optional(parsers.file),
        "a file",
        "File that records which rows of the access log are written. Without it, the"
        " name of `ACCESS_LOG_FILE` plus `.cursor`. Required if `ACCESS_LOG_FILE` is"
        " `-`.",
        is_path=True,
        writes=True,
        needs=("ACCESS_LOG_FILE",),
    )
    access_log_metrics: bool = setting(
        parsers.yes_or_no,
        "true or false",
        "Whether to count the requests in the access log without writing it. With"
        " `ACCESS_LOG_FILE`, the exporter always counts them.",
        default="false",
    )
    access_log_requests_per_minute: int = setting(
        parsers.whole(1, 60),
        "a whole number from 1 to 60",
        "Maximum number of requests for the access log in a minute. Each response has"
        " at most 100 rows.",
        default="2",
        needs=("ACCESS_LOG_FILE", "ACCESS_LOG_METRICS"),
    )

    @property
    def events_cursor(self) -> Path:
        """The cursor file of the audit events, if there is a file of events."""
        return _cursor_path(self.events_file, self.events_cursor_file)

    @property
    def access_log_cursor(self) -> Path:
        """The cursor file of the access log, if there is a file of it."""
        return _cursor_path(self.access_log_file, self.access_log_cursor_file)

    @property
    def reads_access_log(self) -> bool:
        return self.access_log_metrics or self.access_log_file is not None

    @property
    def has_logs(self) -> bool:
        return self.events_file is not None or self.reads_access_log

    def metric_filter(self) -> MetricFilter:
        return MetricFilter(deny=self.metrics_deny, detail=self.peer_detail)

    def select(
        self, intervals: Mapping[str, float], metric_filter: MetricFilter = EVERYTHING
    ) -> Selection:
        """Return the collectors, and the resources that they and the logs need.

        Args:
            intervals: seconds between refreshes of resources, if not the usual ones.
        """
        # A user of another account is not in this one, and has no access tokens here.
        omitted = {ACCESS_TOKENS.name} if self.upstream_account else frozenset[str]()
        logs: dict[str, float] = {}
        if self.events_file is not None:
            logs[AUDIT_EVENTS.name] = EVENTS_INTERVAL
        if self.reads_access_log:
            logs[ACCESS_LOG] = 60.0 / self.access_log_requests_per_minute
        return selection(
            self.collectors,
            {**logs, **intervals},
            omitted,
            metric_filter=metric_filter,
            also_request=logs,
        )

    def has_token_of(self, other: "AccountSettings") -> bool:
        """Return whether both settings state the same token in the same way."""
        names = ("upstream_api_url", "upstream_api_token", "upstream_api_token_file")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def budget_key(self) -> tuple[str, str]:
        """Return a key that is equal for accounts with the same token and address."""
        token = self.upstream_api_token
        if self.upstream_api_token_file is not None:
            try:
                token = self.upstream_api_token_file.read()
            except ValueError:  # it could be read a moment ago
                return self.upstream_api_url, str(self.upstream_api_token_file.path)
        assert token is not None  # one of the two is set
        return self.upstream_api_url, token.reveal()


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of the process and its accounts.

    Attributes:
        accounts: by name; without ACCOUNTS_DIR one with the name "".
    """

    accounts: Mapping[str, AccountSettings]
    thresholds_file: Thresholds | None = setting(
        parsers.optional(parsers.thresholds),
        "a readable JSON file in the format of `thresholds.json`",
        "Thresholds, severities and groups for findings and alerts, such as"
        ' `{"days": {"certificate_soon": 14}}`. The status page, `--check` and the'
        " metrics of findings use them, and so do the alerts, without a change of"
        " Prometheus' rules. Values that the file does not name keep their default."
        " The exporter reads the file at the start and on SIGHUP.",
        section="Metrics and findings",
        is_path=True,
    )
    runbooks_url: str | None = setting(
        parsers.optional(parsers.page),
        "the http or https address of a page, such as https://wiki.example/netbird",
        "Address of your runbooks. The status page and `--check` link to it. Without"
        " it, they link to the exporter's own runbooks at `/runbooks`.",
    )
    listen_address: tuple[Address | EndpointDescription, ...] = setting(
        parse_addresses,
        "host:port, such as :8080, 127.0.0.1:8080 or [::1]:8080, or a Twisted endpoint"
        " (tcp, tcp6, ssl, unix or systemd) such as"
        " unix:/run/api-exporter/http.sock:mode=660; several are separated by commas",
        "Address on which the exporter serves its pages. Without a host, it listens"
        " on all interfaces, IPv6 and IPv4.",
        default=DEFAULT_LISTEN_ADDRESS,
        section="Serving",
    )
    metrics_path: str = setting(
        parsers.metrics_path,
        "a path such as /metrics, other than /, /health, /ready, /findings, /runbooks,"
        " /sd, /lookup, /status.json and /debug",
        "Path of the metrics.",
        default="/metrics",
    )
    lookup: bool = setting(
        parsers.yes_or_no,
        "true or false",
        "Whether to serve `/lookup`, `/lookup.json` and `/lookup.csv`, which name the"
        " peer of an address or DNS name ([other programs](integrations.md#lookup)).",
        default="false",
    )
    max_connections: int = setting(
        parsers.whole(1, 65536),
        "a whole number from 1 to 65536",
        "Maximum number of connections. Above it, every request except `/health` is"
        " answered with 503. From 16 connections above the maximum on, the exporter"
        " closes new connections without an answer. It also closes further ones from an"
        " address that has three quarters of the maximum. An idle connection is closed"
        " after a minute.",
        default="512",
    )
    web_config_file: Path | None = setting(
        parsers.optional(parsers.named_file),
        "a YAML file in the format of Prometheus' exporter-toolkit",
        "TLS, client certificates, passwords and headers, for all"
        " addresses ([authentication](security.md)). A change applies from the next"
        " connection or request on.",
        section=ACCESS_SECTION,
        is_path=True,
    )
    web_bearer_tokens_file: Path | None = setting(
        parsers.optional(parsers.named_file),
        "a file with one token in each line",
        "Bearer tokens that give access, with or without passwords. Each line is a"
        " token or `sha256:` and its hash. A name and `account=NAME,NAME` may precede"
        " it; the latter limits the token to these accounts. A change applies from"
        " the next request on.",
        is_path=True,
    )
    web_open_paths: frozenset[str] = setting(
        parsers.open_paths,
        "the path of the metrics, /sd or /lookup, separated by commas",
        "Paths that need no password or token even if others do. `/sd` includes"
        " `/sd/accounts`, and `/lookup` both tables.",
        needs=("WEB_CONFIG_FILE", "WEB_BEARER_TOKENS_FILE"),
    )
    log_level: str = setting(
        parsers.log_level,
        "one of " + ", ".join(parsers.LOG_LEVELS),
        "Lowest level of log lines that are written.",
        default="info",
        section="Log",
    )
    log_format: str = setting(
        parsers.one_of(*LOG_FORMATS),
        "one of " + ", ".join(LOG_FORMATS),
        "Format of log lines: text for people, or one JSON object a line.",
        default="text",
    )
    accounts_dir: Path | None = setting(
        parsers.optional(parsers.folder),
        "a folder with a NAME.conf for each account",
        "Folder of accounts, to serve several. Each `NAME.conf` contains the"
        " settings of one account. Settings that it does not contain come from the"
        " environment.",
        section="Several accounts",
        is_path=True,
    )
    shard: Shard | None = setting(
        parsers.optional(shard),
        "number/total, such as 0/3, 1/3 and 2/3, or auto/3 if the host name ends in"
        " the number",
        "Number of this process among several that share the accounts.",
    )
    demo_peers: int = setting(
        parsers.whole(0, 100_000),
        "a whole number from 0 to 100000",
        "Number of peers in the simulated network of `--demo`.",
        default="200",
        section="Demonstration",
    )
    demo_accounts: int | None = setting(
        parsers.optional(parsers.whole(3, 500)),
        "a whole number from 3 to 500",
        "Number of simulated accounts of different sizes. Two of them have an"
        " invalid token.",
    )
    demo_fault: str = setting(
        parsers.one_of(*DEMO_FAULTS),
        "one of " + ", ".join(DEMO_FAULTS),
        "Fault of the simulation that begins a minute after the start: the API fails,"
        " the last routing peer of a network disconnects, or the token is deleted.",
        default="none",
    )

    @property
    def output_setting(self) -> str:
        """The setting that sends a log's lines to standard output, or ""."""
        for account in self.accounts.values():
            if account.events_file == parsers.STANDARD_OUTPUT:
                return "EVENTS_FILE"
            if account.access_log_file == parsers.STANDARD_OUTPUT:
                return "ACCESS_LOG_FILE"
        return ""

    @property
    def has_named_accounts(self) -> bool:
        """True if accounts have names, even if there is only one."""
        return "" not in self.accounts


def _cursor_path(file: Path | None, cursor: Path | None) -> Path:
    if cursor is not None:
        return cursor
    assert file is not None
    assert file != parsers.STANDARD_OUTPUT  # where a cursor is required
    return file.with_name(f"{file.name}.cursor")


ACCOUNT_SETTINGS = settings_of(AccountSettings)
"""Settings that a file of ACCOUNTS_DIR may contain."""

PROCESS_SETTINGS = settings_of(Settings)

SETTINGS = ACCOUNT_SETTINGS + PROCESS_SETTINGS

LIVE_SETTINGS = frozenset(
    {"THRESHOLDS_FILE", "LOG_LEVEL", *(setting.name for setting in ACCOUNT_SETTINGS)}
)
"""Settings that SIGHUP applies. A change of another one needs a restart."""

SETTING_BY_NAME = {setting.name: setting for setting in SETTINGS}

RETIRED = {
    "DEMO_RATE_LIMIT": "--demo has no limit",
    "METRICS_ALLOW": "use COLLECTORS and METRICS_DENY, or metric_relabel_configs in"
    " Prometheus",
}
"""Former settings, and what replaces each."""

SECTIONS = {
    section: [setting for setting in SETTINGS if setting.section == section]
    for section in dict.fromkeys(setting.section for setting in SETTINGS)
}
"""Settings by section, in the order of the documentation."""

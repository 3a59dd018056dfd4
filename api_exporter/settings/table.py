"""All settings there are, by what they are about, the basic ones first.

Seconds and bytes throughout.
"""

from pathlib import Path

from api_exporter.settings import parsers
from api_exporter.settings.addresses import DEFAULT, addresses
from api_exporter.settings.certificate import (
    authorities_file,
    certificate_file,
    key_file,
)
from api_exporter.settings.credential import token, token_file
from api_exporter.settings.proxy import proxy_or_none
from api_exporter.settings.setting import Setting
from api_exporter.settings.shard import shard

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")

UPSTREAM_API_URL = Setting(
    "UPSTREAM_API_URL",
    None,
    "an http or https address without a path, such as https://api.netbird.io",
    "Base address of the management API.",
    parsers.url,
    of_account=True,
)
UPSTREAM_API_TOKEN = Setting(
    "UPSTREAM_API_TOKEN",
    "",
    "an access token",
    "Bearer token for the management API. Either this or `UPSTREAM_API_TOKEN_FILE` is"
    " required.",
    parsers.optional(token),
    secret=True,
    of_account=True,
)
UPSTREAM_API_TOKEN_FILE = Setting(
    "UPSTREAM_API_TOKEN_FILE",
    "",
    "a file that holds an access token and can be read",
    "File with the bearer token, read again for every request: replacing its content is"
    " enough. A systemd credential or a container secret will do.",
    parsers.optional(token_file),
    of_account=True,
    path=True,
)
HTTP_TIMEOUT = Setting(
    "HTTP_TIMEOUT",
    "30s",
    "a duration such as 30s, 1m30s or 500ms",
    "Time for one attempt to read from the upstream, from connecting to the end.",
    parsers.duration,
    of_account=True,
)
API_RETRY_ATTEMPTS = Setting(
    "API_RETRY_ATTEMPTS",
    "3",
    "a whole number from 1 to 10",
    "Attempts in all, before a refresh counts as failed.",
    parsers.whole(1, 10),
    of_account=True,
)
UPSTREAM_ACCOUNT = Setting(
    "UPSTREAM_ACCOUNT",
    "",
    "an account's id: letters, digits and - . _ ~",
    "Account of another that the token may read too, such as a tenant of a managed"
    " service provider: sent as `?account=` with every call.",
    parsers.optional(parsers.account_id),
    of_account=True,
)
UPSTREAM_RATE_LIMIT = Setting(
    "UPSTREAM_RATE_LIMIT",
    "",
    "requests a minute and burst, such as 120/1200",
    "What the upstream grants to the token, where that is known. Where it is less than"
    " the refresh intervals need, they are stretched, the longest first.",
    parsers.optional(parsers.rate_limit),
    of_account=True,
)

UPSTREAM_PROXY = Setting(
    "UPSTREAM_PROXY",
    "",
    "the address of an http or https proxy, such as http://proxy.example:3128 or"
    " http://user:password@proxy.example:3128, or none",
    "Proxy for the exporter alone, taken whatever `NO_PROXY` says; `none` goes without"
    " any. Without it `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` hold, by the rules of"
    " Go ([proxies](reach.md)).",
    parsers.optional(proxy_or_none),
    secret=True,
    of_account=True,
)
UPSTREAM_CLIENT_CERT_FILE = Setting(
    "UPSTREAM_CLIENT_CERT_FILE",
    "",
    "a PEM file with a certificate, that can be read",
    "Certificate for a gateway that wants one, and those that vouch for it. It is"
    " looked at for every new connection.",
    parsers.optional(certificate_file),
    of_account=True,
    path=True,
)
UPSTREAM_CLIENT_KEY_FILE = Setting(
    "UPSTREAM_CLIENT_KEY_FILE",
    "",
    "a PEM file with a key that is not encrypted, that can be read",
    "The key of `UPSTREAM_CLIENT_CERT_FILE`, where that does not hold it, too.",
    parsers.optional(key_file),
    of_account=True,
    path=True,
)
UPSTREAM_CA_FILE = Setting(
    "UPSTREAM_CA_FILE",
    "",
    "a PEM file with certificates, that can be read",
    "Authorities that may vouch for the upstream and for an https proxy, in place of"
    " those that this machine or `SSL_CERT_FILE` trusts. It is looked at for every new"
    " connection.",
    parsers.optional(authorities_file),
    of_account=True,
    path=True,
)

COLLECTORS = Setting(
    "COLLECTORS",
    "default",
    "names of collectors, separated by commas",
    "What is published, and with it what is asked for. `default` stands for all but"
    " `memberships`, `drop_in` and `events`: `default,memberships` adds to it. Peers"
    " and groups are asked for in any case.",
    parsers.collectors,
    of_account=True,
)
REFRESH_INTERVALS = Setting(
    "REFRESH_INTERVALS",
    "",
    "resource=duration pairs, separated by commas, such as peers=15s,groups=1m",
    "Time between two refreshes, for the resources that are named.",
    parsers.intervals,
    of_account=True,
)
METRICS_MAX_AGE = Setting(
    "METRICS_MAX_AGE",
    "",
    "a duration such as 10m",
    "How long metrics stay although they cannot be refreshed; without it 5 minutes or"
    " three refresh intervals of the resource, whichever is longer. Never less than one"
    " and a half intervals, or 45 s.",
    parsers.optional(parsers.duration),
    of_account=True,
)
PAGE_MAX_BYTES = Setting(
    "PAGE_MAX_BYTES",
    "1073741824",
    "a whole number from 1 to 1099511627776",
    "The longest text that an account's page may have, without compression. A refresh"
    " that would make it longer fails as `too_large`, and what was told before stays.",
    parsers.whole(1, 2**40),
    of_account=True,
)
EXPOSE_PERSONAL_DATA = Setting(
    "EXPOSE_PERSONAL_DATA",
    "false",
    "true, false, or a list such as hostname,city",
    "Which personal data labels may hold: all of it, none, or these of `email`, `name`,"
    " `hostname`, `connection_ip`, `city` and `serial_number`.",
    parsers.personal,
    of_account=True,
)
PEER_DETAIL = Setting(
    "PEER_DETAIL",
    "all",
    "all, none, or groups: and names or ids of groups, such as groups:servers,routers",
    "Which peers have series of their own, in all families that have such. Numbers of"
    " peers are always of all. A group with a comma in its name is named by its id.",
    parsers.peer_detail,
    of_account=True,
)
IMPORTANT_GROUPS = Setting(
    "IMPORTANT_GROUPS",
    "",
    "names or ids of groups, separated by commas, such as servers,databases",
    "Groups of which each peer matters: the status page, `--check` and"
    " `api_exporter_attention` tell when one is offline, or a group is missing. Without"
    " it those of `THRESHOLDS_FILE`, none as shipped. The alerts that `--rules` makes"
    " have those of the environment, not those of single accounts. A group with a comma"
    " in its name is named by its"
    " id.",
    parsers.groups,
    of_account=True,
)
THRESHOLDS_FILE = Setting(
    "THRESHOLDS_FILE",
    "",
    "a JSON file of the form of `thresholds.json`, that can be read",
    "Numbers, severities and groups by which the status page, `--check` and"
    " `api_exporter_attention` tell what needs attention, and `--rules` makes the"
    ' alerts, such as `{"days": {"certificate_soon": 14}}`. What it does not name is as'
    " shipped. It is read at the start.",
    parsers.optional(parsers.thresholds),
)
RUNBOOKS_URL = Setting(
    "RUNBOOKS_URL",
    "",
    "the http or https address of a page, such as https://wiki.example/netbird",
    "Where the runbooks are, for the links of the status page, of `--check` and of the"
    " alerts that `--rules` makes. Without it they are those of the exporter itself, at"
    " `/runbooks`.",
    parsers.optional(parsers.page),
)
METRICS_ALLOW = Setting(
    "METRICS_ALLOW",
    "",
    "names of the collectors' metrics, separated by commas, such as netbird_api_peer*",
    "The only metrics that are published; `*` stands for anything. The exporter's own"
    " are always there.",
    parsers.patterns,
    of_account=True,
)
METRICS_DENY = Setting(
    "METRICS_DENY",
    "",
    "names of the collectors' metrics, separated by commas, such as netbird_api_user_*",
    "Metrics that are not published, although they are allowed; `*` stands for"
    " anything. What nobody is told of is not computed, and what only that needs is not"
    " asked for.",
    parsers.patterns,
    of_account=True,
)

EVENTS_FILE = Setting(
    "EVENTS_FILE",
    "",
    "a file, or - for standard output",
    "Where to write the audit events, each once, as a line of JSON. They are asked for"
    " every minute then. With `-` all log lines go to standard error.",
    parsers.optional(parsers.output),
    of_account=True,
    path=True,
)
EVENTS_CURSOR_FILE = Setting(
    "EVENTS_CURSOR_FILE",
    "",
    "a file",
    "What was written of the audit events. Without it the name of `EVENTS_FILE` with"
    " `.cursor` behind it; required where that is `-`.",
    parsers.optional(lambda text: Path(text).absolute()),
    of_account=True,
    path=True,
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
    "a path such as /metrics, other than /, /health, /ready, /runbooks, /sd and /debug",
    "Path of the metrics.",
    parsers.metrics_path,
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

WEB_CONFIG_FILE = Setting(
    "WEB_CONFIG_FILE",
    "",
    "a YAML file in the format of Prometheus' exporter-toolkit",
    "TLS, client certificates, passwords, headers and a limit of requests, for all"
    " addresses ([who may come in](security.md)). A change holds from the next"
    " connection on.",
    parsers.optional(parsers.file),
)
WEB_BEARER_TOKENS_FILE = Setting(
    "WEB_BEARER_TOKENS_FILE",
    "",
    "a file with a token a line",
    "Bearer tokens that open the door, beside passwords or alone: each on a line of its"
    " own, as it is or as `sha256:` and its hash, and before it a name if you like, and"
    " `account=NAME,NAME` where it opens these accounts only. A change holds from the"
    " next request on.",
    parsers.optional(parsers.file),
)
WEB_OPEN_PATHS = Setting(
    "WEB_OPEN_PATHS",
    "",
    "the path of the metrics, /sd, or both, separated by a comma",
    "What is served without a password or token although there are any; `/sd` stands"
    " for `/sd/accounts`, too.",
    parsers.open_paths,
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

ACCOUNTS_DIR = Setting(
    "ACCOUNTS_DIR",
    "",
    "a folder with a NAME.conf for each account",
    "Serve several accounts: each `NAME.conf` holds the settings of one, and what it"
    " does not set comes from the environment.",
    parsers.optional(parsers.folder),
)
SHARD = Setting(
    "SHARD",
    "",
    "a number and how many there are, such as 0/3, 1/3 and 2/3, or auto/3 where the"
    " host's name ends in the number",
    "Which of several processes this one is: each keeps a share of the accounts.",
    parsers.optional(shard),
)

DEMO_PEERS = Setting(
    "DEMO_PEERS",
    "200",
    "a whole number from 0 to 100000",
    "Size of the simulated network of `--demo`, in peers.",
    parsers.whole(0, 100_000),
)
DEMO_ACCOUNTS = Setting(
    "DEMO_ACCOUNTS",
    "",
    "a whole number from 3 to 500",
    "Simulate so many accounts, of different sizes, two of them with a dead token.",
    parsers.optional(parsers.whole(3, 500)),
)
DEMO_RATE_LIMIT = Setting(
    "DEMO_RATE_LIMIT",
    "",
    "requests a minute and burst, such as 6/500",
    "A limiter like NetBird's for the simulated network of `--demo`; without it none.",
    parsers.optional(parsers.rate_limit),
)

GROUPS: dict[str, tuple[Setting[object], ...]] = {
    "Upstream": (
        UPSTREAM_API_URL,
        UPSTREAM_API_TOKEN,
        UPSTREAM_API_TOKEN_FILE,
        HTTP_TIMEOUT,
        API_RETRY_ATTEMPTS,
        UPSTREAM_ACCOUNT,
        UPSTREAM_RATE_LIMIT,
    ),
    "The way to the upstream": (
        UPSTREAM_PROXY,
        UPSTREAM_CLIENT_CERT_FILE,
        UPSTREAM_CLIENT_KEY_FILE,
        UPSTREAM_CA_FILE,
    ),
    "What is shown": (
        COLLECTORS,
        REFRESH_INTERVALS,
        METRICS_MAX_AGE,
        PAGE_MAX_BYTES,
        EXPOSE_PERSONAL_DATA,
        PEER_DETAIL,
        IMPORTANT_GROUPS,
        THRESHOLDS_FILE,
        RUNBOOKS_URL,
        METRICS_ALLOW,
        METRICS_DENY,
    ),
    "Audit events": (
        EVENTS_FILE,
        EVENTS_CURSOR_FILE,
    ),
    "Serving": (
        LISTEN_ADDRESS,
        METRICS_PATH,
        MAX_CONNECTIONS,
    ),
    "The front door": (
        WEB_CONFIG_FILE,
        WEB_BEARER_TOKENS_FILE,
        WEB_OPEN_PATHS,
    ),
    "Log": (
        LOG_LEVEL,
        LOG_FORMAT,
    ),
    "Several accounts": (
        ACCOUNTS_DIR,
        SHARD,
    ),
    "Demonstration": (
        DEMO_PEERS,
        DEMO_ACCOUNTS,
        DEMO_RATE_LIMIT,
    ),
}
"""As the documentation has them."""

SETTINGS = tuple(setting for group in GROUPS.values() for setting in group)

OF_ACCOUNT = tuple(setting for setting in SETTINGS if setting.of_account)
"""Those that a file of ACCOUNTS_DIR may set."""

OF_PROCESS = tuple(setting for setting in SETTINGS if not setting.of_account)

TOGETHER: tuple[tuple[Setting[object], ...], ...] = (
    (UPSTREAM_API_TOKEN, UPSTREAM_API_TOKEN_FILE),
    (UPSTREAM_CLIENT_CERT_FILE, UPSTREAM_CLIENT_KEY_FILE),
)
"""Of each of these, one in an account's file replaces all of the environment's."""

"""Settings: accepted values, refused values, and error messages."""

from collections.abc import Mapping
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import Thresholds, default_thresholds
from api_exporter.collectors.metric_filter import EVERYTHING, MetricFilter
from api_exporter.collectors.table import COLLECTORS
from api_exporter.netbird.facts.personal import PERSONAL
from api_exporter.netbird.resources import OFF
from api_exporter.settings.addresses import Address, Endpoint, parse_address
from api_exporter.settings.definitions import (
    ACCOUNT_SETTINGS,
    RETIRED,
    SETTING_BY_NAME,
    SETTINGS,
    AccountSettings,
    Settings,
)
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import (
    MAX_SHOWN_CHARACTERS,
    ConfigurationError,
    quote_value,
)
from api_exporter.settings.parsers import rate_limit
from tests import tries

CANARY = "nbp_c4nary"
"""The secret, which no message may contain."""

REQUIRED = {"UPSTREAM_API_URL": "https://api.example", "UPSTREAM_API_TOKEN": CANARY}

NAMES = [setting.name for setting in SETTINGS]


def problems(environ: Mapping[str, str]) -> list[str]:
    """Return all errors, one line each."""
    try:
        read_settings(environ)
    except ConfigurationError as error:
        return error.problems
    return []


def value(name: str, text: str) -> object:
    """Return the value of a variable's text."""
    settings = read_settings({**REQUIRED, name: text})
    of_account = name in {setting.name for setting in ACCOUNT_SETTINGS}
    values = the_only(settings) if of_account else settings
    found: object = getattr(values, name.lower())
    return found


def the_only(settings: Settings) -> AccountSettings:
    """Return the account of the environment."""
    return settings.accounts[""]


class FieldsTests(SynchronousTestCase):
    def test_missing(self) -> None:
        """A struct of settings needs a value for every field."""
        only = the_only(read_settings(REQUIRED))
        with self.assertRaisesRegex(TypeError, "without its value: Proxy for"):
            AccountSettings(
                **{
                    field: getattr(only, field)
                    for field in AccountSettings.__struct_fields__
                    if field != "upstream_proxy"
                }
            )


class AcceptedTests(SynchronousTestCase):
    def accepts(self, name: str, meanings: Mapping[str, object]) -> None:
        for text, meaning in meanings.items():
            self.assertEqual(meaning, value(name, text), text)

    def test_defaults(self) -> None:
        """Only the API's address and token are required."""
        found = read_settings(REQUIRED)
        account = the_only(found)
        self.assertEqual(":8080", SETTING_BY_NAME["LISTEN_ADDRESS"].default)
        self.assertEqual("/metrics", found.metrics_path)
        self.assertEqual("info", found.log_level)
        self.assertEqual(30.0, account.http_timeout)
        self.assertEqual(3, account.api_retry_attempts)
        self.assertEqual({}, account.refresh_intervals)
        self.assertIsNone(account.metrics_max_age)
        self.assertEqual(frozenset(), account.expose_personal_data)
        self.assertEqual(200, found.demo_peers)

    def test_empty(self) -> None:
        """An empty or blank variable is not set."""
        for blank in ("", " ", "\t\n"):
            self.assertEqual("/metrics", value("METRICS_PATH", blank))

    def test_white_space(self) -> None:
        """White space around a value is ignored."""
        self.assertEqual(5, value("API_RETRY_ATTEMPTS", " 5\n"))

    def test_url(self) -> None:
        """The API's address is a scheme, a host and perhaps a port."""
        self.accepts(
            "UPSTREAM_API_URL",
            {
                "https://api.example": "https://api.example",
                "https://api.example/": "https://api.example",
                "http://127.0.0.1:33073": "http://127.0.0.1:33073",
                "http://[::1]:33073/": "http://[::1]:33073",
                "http://[::0001]": "http://[::1]",
                "http://localhost:": "http://localhost",
                "HTTPS://Api.Example": "https://api.example",
                "https://api.example.:443": "https://api.example.:443",
                "https://münchen.example": "https://xn--mnchen-3ya.example",
                "http://net_bird": "http://net_bird",
                "https://net_bird": "https://net_bird",
                "http://r3---sn_1.my-net.:80": "http://r3---sn_1.my-net.:80",
            },
        )

    def test_token(self) -> None:
        """Only white space around a token is removed."""
        for text in ("nbp_x-._~+/=1", "  nbp_x-._~+/=1\r\n"):
            found = the_only(read_settings({**REQUIRED, "UPSTREAM_API_TOKEN": text}))
            assert found.upstream_api_token is not None
            self.assertEqual("nbp_x-._~+/=1", found.upstream_api_token.reveal())

    def test_durations(self) -> None:
        """Durations are numbers with units, from a millisecond to a year."""
        self.accepts(
            "HTTP_TIMEOUT",
            {
                "30s": 30.0,
                "1m30s": 90.0,
                "500ms": 0.5,
                "2h": 7200.0,
                "1.5m": 90.0,
                "1h2m3s4ms": 3723.004,
                "1ms": 0.001,
                "8784h": 366 * 86400.0,
            },
        )

    def test_listen_address(self) -> None:
        """A listen address is a port with or without a host."""
        for text, meaning in {
            ":8080": Address("", 8080),
            "127.0.0.1:8080": Address("127.0.0.1", 8080),
            "[::1]:8080": Address("::1", 8080),
            "[fe80::1%eth0]:8080": Address("fe80::1%eth0", 8080),
            "localhost:8080": Address("localhost", 8080),
            ":0": Address("", 0),
            ":65535": Address("", 65535),
        }.items():
            self.assertEqual([], problems({**REQUIRED, "LISTEN_ADDRESS": text}))
            self.assertEqual(meaning, parse_address(text))
            self.assertEqual(text, str(meaning))

    def test_metrics_path(self) -> None:
        """The path of the metrics may have several segments."""
        for text in ("/metrics", "/api/v1/metrics", "/a-b_c~d.e", "/healthz", "/..."):
            self.assertEqual(text, value("METRICS_PATH", text))

    def test_words(self) -> None:
        """Levels and booleans are accepted in any case."""
        self.accepts("LOG_LEVEL", {"debug": "debug", "ERROR": "error"})

    def test_personal_data(self) -> None:
        """Personal data may be all, none, or some kinds."""
        self.accepts(
            "EXPOSE_PERSONAL_DATA",
            {
                "True": frozenset(PERSONAL),
                "FALSE": frozenset(),
                "city": frozenset({"city"}),
                " hostname , city,": frozenset({"city", "hostname"}),
            },
        )

    def test_thresholds(self) -> None:
        """A file contains only the thresholds that differ from the shipped ones."""
        file = Path(self.mktemp())
        file.write_text('{"days": {"login_soon": 23}}')
        found = value("THRESHOLDS_FILE", str(file))
        assert isinstance(found, Thresholds)
        self.assertEqual({**default_thresholds().days, "login_soon": 23}, found.days)
        self.assertEqual(default_thresholds().severities, found.severities)

    def test_runbooks(self) -> None:
        """Runbooks are a page to which an anchor is added."""
        for text in ("https://wiki.example/a/b.md", "http://[::1]:8080/runbooks"):
            self.accepts("RUNBOOKS_URL", {text: text})

    def test_whole_numbers(self) -> None:
        """Whole numbers reach from their lowest to their highest."""
        self.accepts("API_RETRY_ATTEMPTS", {"1": 1, "03": 3, "10": 10})
        self.accepts("DEMO_PEERS", {"0": 0, "100000": 100_000})

    def test_collectors(self) -> None:
        """Collectors are listed by name; `default` means all but three."""
        special = {"memberships", "events"}
        ordinary = {c.name for c in COLLECTORS} - special
        self.accepts(
            "COLLECTORS",
            {
                "": ordinary,
                "default": ordinary,
                "peers": {"peers"},
                " peers , groups,": {"peers", "groups"},
                "default,events": ordinary | {"events"},
            },
        )

    def test_refresh_intervals(self) -> None:
        """Intervals are set by resource, from one second on."""
        self.accepts(
            "REFRESH_INTERVALS",
            {
                "": {},
                "peers=15s,groups=1m": {"peers": 15.0, "groups": 60.0},
                " peers = 1s , ": {"peers": 1.0},
                "agent_consumption=off,users= OFF": {
                    "agent_consumption": OFF,
                    "users": OFF,
                },
            },
        )

    def test_important_groups(self) -> None:
        """Important groups are names or ids, each once; by default there are none."""
        self.accepts(
            "IMPORTANT_GROUPS", {"": (), " R&D <core> , g7,, g7": ("R&D <core>", "g7")}
        )

    def test_peer_detail(self) -> None:
        """Peers with series are all, none, or those of groups by name or id."""
        self.accepts(
            "PEER_DETAIL",
            {
                "": None,
                "ALL": None,
                "none": frozenset(),
                "groups:servers": {"servers"},
                " groups : R&D <core> , d2g0:7,, ": {"R&D <core>", "d2g0:7"},
            },
        )

    def test_metrics(self) -> None:
        """Metrics are listed by name; `*` matches any text."""
        self.accepts(
            "METRICS_DENY",
            {
                "": (),
                "netbird_api_peers": ("netbird_api_peers",),
                " netbird_api_peer_* , *_info, *_info,": (
                    "netbird_api_peer_*",
                    "*_info",
                ),
                "*": ("*",),
            },
        )

    def test_choice(self) -> None:
        """Both settings together select the families."""
        words = {"PEER_DETAIL": "groups:servers", "METRICS_DENY": "*_info"}
        choice = MetricFilter(deny=("*_info",), detail=frozenset({"servers"}))
        self.assertEqual(
            choice, the_only(read_settings({**REQUIRED, **words})).metric_filter()
        )
        self.assertEqual(EVERYTHING, the_only(read_settings(REQUIRED)).metric_filter())

    def test_endpoints(self) -> None:
        """There may be several listen addresses, and Twisted endpoints."""
        self.accepts(
            "LISTEN_ADDRESS",
            {
                "unix:/run/x.sock": (Endpoint("unix:/run/x.sock"),),
                ":8080, systemd:domain=INET:index=0": (
                    Address("", 8080),
                    Endpoint("systemd:domain=INET:index=0"),
                ),
            },
        )

    def test_metrics_max_age(self) -> None:
        """By default, no maximum age of metrics is set."""
        self.accepts("METRICS_MAX_AGE", {"": None, "10m": 600.0})


class RefusedTests(SynchronousTestCase):
    def refuses(self, name: str, texts: list[str], words: str) -> None:
        """Fail unless a value has a one-line error with name, value and hint."""
        for text in texts:
            found = problems({**REQUIRED, name: text})
            self.assertEqual(1, len(found), text)
            begin = f"{name}: {quote_value(text)} is not allowed: it must be "
            self.assertEqual(begin, found[0][: len(begin)])
            self.assertIn(words, found[0][len(begin) :])

    def test_rate_limit(self) -> None:
        """A rate limit needs a rate and a burst."""
        self.refuses(
            "UPSTREAM_RATE_LIMIT", ["6", "6/", "/6", "0/1", "a/b"], "requests a minute"
        )

    def test_missing(self) -> None:
        """The API's address and token are requested by name."""
        url, token = problems({})
        self.assertEqual(
            "UPSTREAM_API_URL is not set: it must be an http or https address without"
            " a path, such as https://api.netbird.io",
            url,
        )
        self.assertEqual(
            "UPSTREAM_API_TOKEN is not set: it must be an access token", token[:57]
        )

    def test_all_at_once(self) -> None:
        """Every error has a line, in the order of the documentation."""
        wrong = {
            "UPSTREAM_API_URL": "?",
            "UPSTREAM_API_TOKEN": "? ?",
            "HTTP_TIMEOUT": "?",
            "API_RETRY_ATTEMPTS": "?",
            "COLLECTORS": "?",
            "REFRESH_INTERVALS": "?",
            "METRICS_MAX_AGE": "?",
            "EXPOSE_PERSONAL_DATA": "?",
            "PEER_DETAIL": "?",
            "METRICS_DENY": "?",
            "LISTEN_ADDRESS": "?",
            "METRICS_PATH": "?",
            "LOG_LEVEL": "?",
            "DEMO_PEERS": "?",
        }
        found = problems(wrong)
        self.assertEqual(list(wrong), [line.partition(":")[0] for line in found])
        with self.assertRaises(ConfigurationError) as caught:
            read_settings(wrong)
        self.assertEqual(found, str(caught.exception).splitlines())

    def test_retryable(self) -> None:
        """A missing file is retryable, unless a setting is wrong."""
        url = {"UPSTREAM_API_URL": "https://api.example"}
        missing = {"UPSTREAM_API_TOKEN_FILE": "/nowhere/token"}
        for environ, retryable in (
            ({**url, **missing}, True),
            (missing, False),
            (url, False),
            ({**url, **missing, "LOG_LEVEL": "loud"}, False),
        ):
            with self.assertRaises(ConfigurationError) as caught:
                read_settings(environ)
            self.assertEqual(retryable, caught.exception.retryable, environ)

    def test_url(self) -> None:
        """An address with more than the API's base is refused with a hint."""
        for text, words in {
            "api.example": "the scheme must be http or https",
            "ftp://api.example": "the scheme must be http or https",
            "https://api.example/api": "leave out the path",
            "https://api.example?a=b": "leave out the query",
            "https://api.example/?": "leave out the query",
            "https://api.example#here": "leave out the query and the fragment",
            "https://": "the address has no host",
            "https://:443": "the address has no host",
            "https://api.example:0": "port 0",
            "https://api.example:99999": "an http or https address",
            "https://api.example:x": "an http or https address",
            "https://[::1": "an http or https address",
            "https://[::g]": "the host cannot be read",
            "https://[v1.a:b]": "the address of the host is not valid",
            "https://[fe80::1%eth0]": "leave out the zone",
            "https://a..b": "Empty Label",
            "http://a..b": "Empty Label",
            f"http://{'a_' * 32}": "U+005F",
            "https://h;x": "Codepoint U+003B",
            "https://%zz": "Codepoint U+0025",
            "https://-ä": "must not start or end with a hyphen",
            f"https://{'a' * 64}": "too long",
            "https://api example": "a space or control character is not allowed",
            "https://api\x00.example": "a space or control character is not allowed",
        }.items():
            self.refuses("UPSTREAM_API_URL", [text], words)

    def test_password(self) -> None:
        """A user or password in the address is refused, and not shown."""
        for user in ("m3", "m3:pw", "m3:p/w"):
            for host in ("api.example", "a"):
                text = f"https://{user}@{host}"
                (problem,) = problems({**REQUIRED, "UPSTREAM_API_URL": text})
                self.assertIn("UPSTREAM_API_URL: ", problem)
                self.assertNotIn("m3", problem)

    @settings(deadline=None, max_examples=tries(300))
    @given(
        st.sampled_from([n for n in NAMES if n not in REQUIRED]),
        st.text(st.sampled_from("abcxyz0189_-+/=.,:@ ABC%é"), min_size=17),
        st.sampled_from(["", "peers=", "groups:", "https://", "[", "email,", "tcp:"]),
    )
    def test_long_values(self, name: str, secret: str, before: str) -> None:
        """Errors repeat only a few characters of a refused value."""
        for text in problems({**REQUIRED, name: before + secret}):
            known = SETTING_BY_NAME[name].allowed
            for at in range(len(secret) - MAX_SHOWN_CHARACTERS):
                part = secret[at : at + MAX_SHOWN_CHARACTERS + 1]
                self.assertNotIn(part, text.replace(known, ""))

    def test_misplaced_secrets(self) -> None:
        """A token or password in the wrong variable is not shown."""
        token = "a-token-from-elsewhere"
        for name in ("LISTEN_ADDRESS", "COLLECTORS", "REFRESH_INTERVALS", "LOG_LEVEL"):
            for text in (token, f"x,{token}", f"{token}=1s", f"me:{CANARY}@host:80"):
                found = problems({**REQUIRED, "UPSTREAM_API_TOKEN": token, name: text})
                self.assertEqual(1, len(found), text)
                self.assertNotIn(token, found[0])
                self.assertNotIn(CANARY, found[0])

    def test_token_as_metric(self) -> None:
        """A token in the place of a metric is not shown."""
        for token in ("plain_token_from_elsewhere", CANARY):
            for text in (token, f"x_{token}*"):
                environ = {"UPSTREAM_API_TOKEN": token, "METRICS_DENY": text}
                (problem,) = problems({**REQUIRED, **environ})
                self.assertNotIn(token, problem)

    def test_long_text(self) -> None:
        """A variable of the longest possible length is refused like others."""
        long = "a" * 130_000
        for text in (long, f"me:{long}@{long}", f"https://{long}", f"{long}://@{long}"):
            for name in ("UPSTREAM_API_URL", "LISTEN_ADDRESS", "COLLECTORS"):
                self.assertEqual(1, len(problems({**REQUIRED, name: text})), name)

    def test_token(self) -> None:
        """A token with other characters than visible ASCII is refused, not shown."""
        for middle in (" ", "\t", "\r\n", "\x00", "\x7f", "\xa0", "é", "\ud800"):
            text = f"{CANARY}{middle}{CANARY}"
            (problem,) = problems({**REQUIRED, "UPSTREAM_API_TOKEN": text})
            self.assertEqual(
                "UPSTREAM_API_TOKEN: its value is not allowed: it must be an access"
                " token (the token contains a space, control or"
                " non-ASCII character)",
                problem,
            )

    def test_bare_number(self) -> None:
        """A number without a unit is refused with the hint to add one."""
        for name in ("HTTP_TIMEOUT", "METRICS_MAX_AGE"):
            self.refuses(name, ["30"], "a duration such as")
            self.refuses(name, ["30"], "(add a unit: 30s?)")
            self.refuses(name, ["1.5"], "(add a unit: 1.5s?)")

    def test_durations(self) -> None:
        """A wrong, too short or too long duration is refused."""
        allowed = "a duration such as 30s, 1m30s or 500ms"
        units = ["s", "1d", "30S", "1 s", "1s ago", "1m30", "1m,30s"]
        numbers = ["-1s", "+1s", ".5s", "1.s", "1,5s", "1e3s", "٣s", "nans", "infs"]
        self.refuses("HTTP_TIMEOUT", units + numbers, allowed)
        sizes = ["0s", "0.5ms", "8784h1s", "9" * 400 + "h"]
        self.refuses("HTTP_TIMEOUT", sizes, f"{allowed} (from 1ms to a year)")

    def test_listen_address(self) -> None:
        """An address needs a port, and an IPv6 address its brackets."""
        allowed = "host:port, such as :8080, 127.0.0.1:8080 or [::1]:8080"
        ports = ["8080", "localhost", ":", ":http", ":65536", ":-1", ":123456"]
        hosts = ["::1:8080", "[::1]", "[::1:8080", "[]:8080", "http://a:80", "a b:80"]
        self.refuses("LISTEN_ADDRESS", ports + hosts, allowed)

    def test_thresholds(self) -> None:
        """An error in a file of thresholds names its place."""
        file = Path(self.mktemp())
        for text, reported in (
            ('{"days": {"login_soon": 0}}', "(days: login_soon: 0: Expected"),
            ("[]", "(Expected `object`, got `array`)"),
            ("{" + " " * 2**20, "(the file has more than 1048576 bytes)"),
        ):
            file.write_text(text)
            [problem] = problems({**REQUIRED, "THRESHOLDS_FILE": str(file)})
            begin = f"THRESHOLDS_FILE: {quote_value(str(file))} is not "
            self.assertTrue(problem.startswith(begin))
            self.assertIn(reported, problem)
        self.refuses(
            "THRESHOLDS_FILE", ["/dev/null"], "(the file is not a regular file)"
        )
        self.refuses("THRESHOLDS_FILE", ["/nothing"], "(No such file or directory)")

    def test_runbooks(self) -> None:
        """An address of runbooks that YAML would need to quote is refused."""
        self.refuses(
            "RUNBOOKS_URL",
            ["wiki", "ftp://a/b", "https://a/b#c", "https://a/{{x}}", "https://a/'b"]
            + ["https://a/b c"],
            "the http or https address of a page",
        )

    def test_metrics_path_that_hides(self) -> None:
        """The path of the metrics must not hide another page."""
        self.refuses(
            "METRICS_PATH",
            ["/health", "/ready", "/debug", "/debug/pprof/heap", "/health/metrics"]
            + ["/sd", "/sd/accounts", "/findings", "/runbooks", "/status.json"]
            + ["/status.schema.json", "/lookup", "/lookup.csv", "/lookup.json"],
            "(another page uses this path)",
        )

    def test_metrics_path(self) -> None:
        """The path of the metrics consists of plain, nonempty segments."""
        allowed = "a path such as /metrics, other than /, /health, /ready, /findings"
        empty = ["/", "metrics", "//", "/metrics/", "/a//b"]
        dots = ["/.", "/..", "/a/../health", "/./health"]
        odd = ["/a b", "/a?b", "/a%20b", "/é", "*"]
        self.refuses("METRICS_PATH", empty + dots + odd, allowed)

    def test_account_id(self) -> None:
        """An account's id needs no quoting in a query."""
        self.refuses("UPSTREAM_ACCOUNT", ["a b", "a&b", "é", "a" * 257], "an account")

    def test_words(self) -> None:
        """Unknown words are refused with the list of allowed ones."""
        self.refuses("LOG_LEVEL", ["warn", "2"], "one of debug, info, warning, error")
        words = "true, false, or a list such as hostname,city"
        self.refuses("EXPOSE_PERSONAL_DATA", ["yes", "1", ",", "city,ip"], words)

    def test_whole_numbers(self) -> None:
        """Only whole numbers in the range are accepted."""
        self.refuses(
            "API_RETRY_ATTEMPTS",
            ["0", "11", "-1", "+3", "3.0", "1e1", "three", "٣", "9" * 5000],
            "a whole number from 1 to 10",
        )
        self.refuses("DEMO_PEERS", ["100001"], "a whole number from 0 to 100000")

    def test_collectors(self) -> None:
        """An unknown collector is refused with the list of known ones."""
        known = ", ".join([*(c.name for c in COLLECTORS), "default"])
        self.refuses("COLLECTORS", ["peers,pears"], f"'pears' is not one of {known}")
        self.refuses("COLLECTORS", ["Peers"], f"'Peers' is not one of {known}")
        self.refuses("COLLECTORS", [",", ",,", ", ,"], "the list is empty")

    def test_peer_detail(self) -> None:
        """A value without groups is refused."""
        self.refuses(
            "PEER_DETAIL",
            ["servers", "group:servers", "groups", "no"],
            "all, none, or groups: and names or ids of groups",
        )
        self.refuses("IMPORTANT_GROUPS", [","], "(the list is empty)")
        self.refuses("IMPORTANT_GROUPS", ["a\udcff"], "(the value is not UTF-8)")
        self.refuses("PEER_DETAIL", ["groups:", "groups: ,"], "(the list is empty)")

    def test_metrics(self) -> None:
        """A text that cannot be the name of a metric is refused."""
        for text in ("a-b", "netbird_api_peers,?", "[a]", "é", "a" * 257):
            self.refuses("METRICS_DENY", [text], "is not a metric name")
        self.refuses("METRICS_DENY", [",", ", ,"], "the list is empty")

    def test_drop_in(self) -> None:
        """The removed collector is refused with its replacement."""
        self.refuses("COLLECTORS", ["drop_in"], "netbird-api-exporter.rules.yml")

    def test_retired(self) -> None:
        """A former setting is refused with its replacement."""
        for name, instead in RETIRED.items():
            self.assertEqual(
                [f"{name} is not a setting any more: {instead}"],
                problems({**REQUIRED, name: "x"}),
            )
            self.assertEqual([], problems({**REQUIRED, name: " "}))

    def test_no_such_metric(self) -> None:
        """A pattern that matches no metric of an enabled collector is an error."""
        for text in (
            "netbird_api_pear_*",
            "netbird_api_peers,netbird_api_pear_*",
            "netbird_api_PEERS",
            "netbird_api_group_member",  # of a collector that is off
            "netbird_api_up",  # our own
            "api_exporter_*",
        ):
            pattern = text.rpartition(",")[2]
            self.assertEqual(
                [
                    f"METRICS_DENY: {quote_value(pattern)} matches no metric of an"
                    " enabled collector (see docs/metrics.md)"
                ],
                problems({**REQUIRED, "METRICS_DENY": text}),
            )
        member = {"METRICS_DENY": "netbird_api_group_member"}
        on = {"COLLECTORS": "default,memberships"}
        self.assertEqual([], problems({**REQUIRED, **member, **on}))
        # PEER_DETAIL takes nothing away from what there is to name.
        of_peers = {"METRICS_DENY": "netbird_api_peer_*", "PEER_DETAIL": "none"}
        self.assertEqual([], problems({**REQUIRED, **of_peers}))

    def test_refresh_intervals(self) -> None:
        """Unknown or repeated resources and wrong intervals are refused."""
        for text, words in {
            "pears=15s": "'pears' is not one of peers, current_user, accounts, ",
            "=15s": "'' is not one of peers, ",
            "peers": "peers needs one duration",
            "access_log=5s": "access_log: set ACCESS_LOG_REQUESTS_PER_MINUTE",
            "peers=15s,peers=20s": "peers needs one duration",
            "peers=": "peers: no duration",
            "peers=often": "peers: no duration",
            "groups=1m,peers=15": "peers: add a unit: 15s?",
            "peers=999ms": "peers: at least 1s",
            "peers=off": "peers: the exporter always needs this resource",
            "groups=off": "groups: the exporter always needs this resource",
        }.items():
            self.refuses("REFRESH_INTERVALS", [text], words)


class SecrecyTests(SynchronousTestCase):
    def test_settings(self) -> None:
        """No text form of settings contains the token."""
        found = the_only(read_settings(REQUIRED))
        for secret in (found, found.upstream_api_token):
            self.assertNotIn(CANARY, f"{secret} {secret!r}")
        self.assertEqual("<token>", repr(found.upstream_api_token))

    def test_error(self) -> None:
        """No text form of an error contains the token."""
        with self.assertRaises(ConfigurationError) as caught:
            read_settings({"UPSTREAM_API_TOKEN": f"{CANARY} {CANARY}"})
        self.assertNotIn(CANARY, f"{caught.exception} {caught.exception!r}")
        self.assertIsNone(caught.exception.__context__)


ODD = st.characters()  # lone surrogates included: the environment may hold any bytes
HOSTILE = (
    st.text(ODD)
    | st.text("0159hms.,:=/@?#[]% \n")
    | st.sampled_from(["30s", ":8080", "peers=", "peers", "https://", "/metrics", "1"])
)


class AnyTextTests(SynchronousTestCase):
    @settings(deadline=None)
    @given(
        others=st.dictionaries(st.sampled_from(NAMES), HOSTILE | st.text(ODD)),
        before=HOSTILE,
        after=HOSTILE,
    )
    def test_any_text(self, others: dict[str, str], before: str, after: str) -> None:
        """Any text gives settings, or one-line errors with their variables' names."""
        token = {"UPSTREAM_API_TOKEN": f"{before}{CANARY}{after}"}
        try:
            found = read_settings({**REQUIRED, **others, **token})
        except ConfigurationError as error:
            for problem in error.problems:
                self.assertEqual([problem], problem.splitlines())
                self.assertTrue(problem.startswith(tuple(NAMES)), problem)
                self.assertTrue(problem.isprintable(), problem)
            self.assertNotIn(CANARY, f"{error} {error!r}")
        else:
            self.assertIsInstance(found, Settings)
            self.assertNotIn(CANARY, repr(found))


class RateLimitTests(SynchronousTestCase):
    def test_bounds(self) -> None:
        """A rate and a burst are from 1 to a million."""
        self.assertEqual((1, 1_000_000), rate_limit("1/1000000"))
        for text in ("0/1", "1/0", "1000001/1", "1/1000001", "6", "6/"):
            self.assertRaises(ValueError, rate_limit, text)

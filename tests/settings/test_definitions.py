"""Settings: accepted values, refused values, and error messages."""

import re
from collections.abc import Mapping
from pathlib import Path

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import Thresholds, default_thresholds
from api_exporter.collectors.collector import EVERYTHING, MetricFilter
from api_exporter.netbird.records import PERSONAL
from api_exporter.netbird.resources import OFF
from api_exporter.settings.addresses import Address, EndpointDescription, parse_address
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
from api_exporter.subjects.table import COLLECTORS
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


ORDINARY = {c.name for c in COLLECTORS} - {"memberships", "events"}
ACCEPTED: dict[str, dict[str, object]] = {
    "UPSTREAM_API_URL": {
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
    "HTTP_TIMEOUT": {
        "30s": 30.0,
        "1m30s": 90.0,
        "500ms": 0.5,
        "2h": 7200.0,
        "1.5m": 90.0,
        "1h2m3s4ms": 3723.004,
        "1ms": 0.001,
        "8784h": 366 * 86400.0,
    },
    "UPSTREAM_RATE_LIMIT": {"1/1000000": (1, 1_000_000)},
    "METRICS_PATH": {
        **dict.fromkeys(("", " ", "\t\n"), "/metrics"),
        **{
            text: text
            for text in ("/api/v1/metrics", "/a-b_c~d.e", "/healthz", "/...", "/m")
        },
    },
    "LOG_LEVEL": {"debug": "debug", "ERROR": "error", "Warn": "warning"},
    "EXPOSE_PERSONAL_DATA": {
        "True": frozenset(PERSONAL),
        "FALSE": frozenset(),
        "city": frozenset({"city"}),
        " hostname , city,": frozenset({"city", "hostname"}),
    },
    "RUNBOOKS_URL": {
        text: text
        for text in ("https://wiki.example/a/b.md", "http://[::1]:8080/runbooks")
    },
    "API_RETRY_ATTEMPTS": {"1": 1, "03": 3, "10": 10, " 5\n": 5},
    "DEMO_PEERS": {"0": 0, "100000": 100_000},
    "COLLECTORS": {
        "": ORDINARY,
        "default": ORDINARY,
        " peers , groups,": {"peers", "groups"},
        "default,events": ORDINARY | {"events"},
    },
    "REFRESH_INTERVALS": {
        "": {},
        "peers=15s,groups=1m": {"peers": 15.0, "groups": 60.0},
        " peers = 1s , ": {"peers": 1.0},
        "agent_consumption=off,users= OFF": {"agent_consumption": OFF, "users": OFF},
    },
    "IMPORTANT_GROUPS": {"": (), " R&D <core> , g7,, g7": ("R&D <core>", "g7")},
    "PEER_DETAIL": {
        "": None,
        "ALL": None,
        "none": frozenset(),
        "groups:servers": {"servers"},
        " groups : R&D <core> , d2g0:7,, ": {"R&D <core>", "d2g0:7"},
    },
    "METRICS_DENY": {
        "": (),
        "netbird_api_peers": ("netbird_api_peers",),
        " netbird_api_peer_* , *_info, *_info,": ("netbird_api_peer_*", "*_info"),
        "*": ("*",),
    },
    "LISTEN_ADDRESS": {
        "unix:/run/x.sock": (EndpointDescription("unix:/run/x.sock"),),
        ":8080, systemd:domain=INET:index=0": (
            Address("", 8080),
            EndpointDescription("systemd:domain=INET:index=0"),
        ),
    },
    "METRICS_MAX_AGE": {"": None, "10m": 600.0},
}
"""The values of texts."""

_DURATION = "a duration such as 30s, 1m30s or 500ms"
_UNITS = ["s", "1d", "30S", "1 s", "1s ago", "1m30", "1m,30s"]
_NUMBERS = ["-1s", "+1s", ".5s", "1.s", "1,5s", "1e3s", "٣s", "nans", "infs"]
_SIZES = ["0s", "0.5ms", "8784h1s", "9" * 400 + "h"]
_NAMES = ", ".join([*(c.name for c in COLLECTORS), "default"])
REFUSED: dict[str, dict[str, list[str]]] = {
    "UPSTREAM_API_URL": {
        "the scheme must be http or https": ["api.example", "ftp://api.example"],
        "leave out the path": ["https://api.example/api"],
        "leave out the query": ["https://api.example?a=b", "https://api.example/?"],
        "leave out the query and the fragment": ["https://api.example#here"],
        "the address has no host": ["https://", "https://:443"],
        "port 0": ["https://api.example:0"],
        "an http or https address": ["https://a:99999", "https://a:x", "https://[::1"],
        "the host cannot be read": ["https://[::g]"],
        "the address of the host is not valid": ["https://[v1.a:b]"],
        "leave out the zone": ["https://[fe80::1%eth0]"],
        "Empty Label": ["https://a..b", "http://a..b"],
        "U+005F": [f"http://{'a_' * 32}"],
        "Codepoint U+003B": ["https://h;x"],
        "Codepoint U+0025": ["https://%zz"],
        "(the name of the host: Codepoint U+00B7 not allowed)": ["https://a·b"],
        "First codepoint must be": [f"https://1{'ב' * 9}"],
        "must not start or end with a hyphen": ["https://-ä"],
        "too long": [f"https://{'a' * 64}"],
        "a space or control character is not allowed": ["https://a b", "https://a\0.b"],
    },
    "UPSTREAM_RATE_LIMIT": {
        "requests a minute": ["6", "6/", "/6", "a/b", "0/1", "1/0"]
        + ["1000001/1", "1/1000001"]
    },
    "UPSTREAM_ACCOUNT": {"an account": ["a b", "a&b", "é", "a" * 257]},
    "HTTP_TIMEOUT": {
        _DURATION: _UNITS + _NUMBERS,
        f"{_DURATION} (add a unit: 30s?)": ["30"],
        f"{_DURATION} (from 1ms to a year)": _SIZES,
    },
    "METRICS_MAX_AGE": {"(add a unit: 1.5s?)": ["1.5"]},
    "LISTEN_ADDRESS": {
        "host:port, such as :8080, 127.0.0.1:8080 or [::1]:8080": [
            *("8080", "localhost", ":", ":http", ":65536", ":-1", ":123456", ":٨٠"),
            *("::1:8080", "[::1]", "[::1:8080", "[]:8080", "http://a:80", "a b:80"),
        ],
        "(an address is listed twice)": [":80, :80"],
        "(write :9999)": ["9999"],
    },
    "THRESHOLDS_FILE": {
        "(the file is not a regular file)": ["/dev/null"],
        "(No such file or directory)": ["/nothing"],
    },
    "ACCESS_LOG_FILE": {"(the root folder is not a file)": ["/", "//"]},
    "EVENTS_CURSOR_FILE": {"(the root folder is not a file)": ["/"]},
    "RUNBOOKS_URL": {
        "the http or https address of a page": [
            *("wiki", "ftp://a/b", "https://a/b#c", "https://a/b c"),
            *("https://a/{{x}}", "https://a/'b"),
        ]
    },
    "METRICS_PATH": {
        "(another page uses this path)": [
            *("/health", "/ready", "/debug", "/debug/pprof/heap", "/health/metrics"),
            *("/sd", "/sd/accounts", "/findings", "/runbooks", "/status.json"),
            *("/status.schema.json", "/lookup", "/lookup.csv", "/lookup.json"),
        ],
        "a path such as /metrics, other than /, /health, /ready, /findings": [
            *("/", "metrics", "//", "/metrics/", "/a//b", "/.", "/..", "/a/../health"),
            *("/./health", "/a b", "/a?b", "/a%20b", "/é", "*"),
        ],
    },
    "LOG_LEVEL": {"one of debug, info, warning, error": ["warnings", "2"]},
    "EXPOSE_PERSONAL_DATA": {
        "true, false, or a list such as hostname,city": ["yes", "1", ",", "city,ip"]
    },
    "API_RETRY_ATTEMPTS": {
        "a whole number from 1 to 10": [
            *("0", "11", "-1", "+3", "3.0", "1e1", "three", "٣", "9" * 5000)
        ]
    },
    "PAGE_MAX_BYTES": {
        "(write 64000000)": ["64MB", "64 MB", "64M", "64mb"],
        "(write 67108864)": ["64MiB", "64Mi"],
        "a whole number from 1 to 1099511627776": ["2TiB", "0", "64 parts"],
    },
    "DEMO_PEERS": {"a whole number from 0 to 100000": ["100001"]},
    "COLLECTORS": {
        f"'pears' is not one of {_NAMES}": ["peers,pears"],
        f"'Peers' is not one of {_NAMES}": ["Peers"],
        "-dns: list all collectors that you want, or leave out": ["default,-dns"],
        "the list is empty": [",", ",,", ", ,"],
        "netbird-api-exporter.rules.yml": ["drop_in"],
    },
    "PEER_DETAIL": {
        "all, none, or groups: and names or ids of groups": [
            *("servers", "group:servers", "groups", "no")
        ],
        "(the list is empty)": ["groups:", "groups: ,"],
        "(the value is not UTF-8)": ["groups:a\udcff"],
    },
    "EVENTS_FILE": {"(the value is not UTF-8)": ["/var/log/a\udcff"]},
    "IMPORTANT_GROUPS": {
        "(the list is empty)": [","],
        "(the value is not UTF-8)": ["a\udcff"],
    },
    "METRICS_DENY": {
        "is not a metric name": ["a-b", "netbird_api_peers,?", "[a]", "é", "a" * 257],
        "the list is empty": [",", ", ,"],
    },
    "REFRESH_INTERVALS": {
        "'pears' is not one of peers, current_user, accounts, ": ["pears=15s"],
        "'agent_consumtion' is not one of peers, ": ["agent_consumtion=1h"],
        "'' is not one of peers, ": ["=15s"],
        "peers needs one duration": ["peers", "peers=15s,peers=20s"],
        "peers: no duration": ["peers=", "peers=often"],
        "peers: add a unit: 15s?": ["groups=1m,peers=15"],
        "peers: at least 1s": ["peers=999ms"],
        "peers: the exporter always needs this resource": ["peers=off"],
        "groups: the exporter always needs this resource": ["groups=off"],
        "access_log: set ACCESS_LOG_REQUESTS_PER_MINUTE": ["access_log=5s"],
    },
}
"""Texts that are refused, by a part of the words that say what is allowed."""


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
    def test_values(self) -> None:
        """Each text has its value; white space around it is ignored."""
        for name, meanings in ACCEPTED.items():
            for text, meaning in meanings.items():
                self.assertEqual(meaning, value(name, text), text)

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
            self.assertEqual((meaning, text), (parse_address(text), str(meaning)))

    def test_thresholds(self) -> None:
        """A file contains only the thresholds that differ from the shipped ones."""
        file = Path(self.mktemp())
        file.write_text('{"days": {"login_soon": 23}}')
        found = value("THRESHOLDS_FILE", str(file))
        assert isinstance(found, Thresholds)
        self.assertEqual({**default_thresholds().days, "login_soon": 23}, found.days)
        self.assertEqual(default_thresholds().severities, found.severities)

    def test_choice(self) -> None:
        """Both settings together select the families."""
        words = {"PEER_DETAIL": "groups:servers", "METRICS_DENY": "*_info"}
        choice = MetricFilter(deny=("*_info",), detail=frozenset({"servers"}))
        for more, expected in ((words, choice), ({}, EVERYTHING)):
            found = the_only(read_settings({**REQUIRED, **more})).metric_filter()
            self.assertEqual(expected, found)


class RefusedTests(SynchronousTestCase):
    def test_values(self) -> None:
        """A refused value has a one-line error with name, value and hint."""
        for name, refused in REFUSED.items():
            for words, texts in refused.items():
                for text in texts:
                    found = problems({**REQUIRED, name: text})
                    self.assertEqual(1, len(found), text)
                    begin = f"{name}: {quote_value(text)} is not allowed: it must be "
                    self.assertEqual(begin, found[0][: len(begin)])
                    self.assertIn(words, found[0][len(begin) :])

    def test_missing(self) -> None:
        """The API's address and token are requested by name."""
        starts = (
            "UPSTREAM_API_URL is not set: it must be an http or https address without a"
            " path, such as https://api.netbird.io",
            "UPSTREAM_API_TOKEN is not set: it must be an access token",
        )
        for start, problem in zip(starts, problems({}), strict=True):
            self.assertEqual(start, problem[: len(start)])

    def test_all_at_once(self) -> None:
        """Every error has a line, in the order of the documentation."""
        names = (
            *("UPSTREAM_API_URL", "UPSTREAM_API_TOKEN", "HTTP_TIMEOUT"),
            *("API_RETRY_ATTEMPTS", "COLLECTORS", "REFRESH_INTERVALS"),
            *("METRICS_MAX_AGE", "EXPOSE_PERSONAL_DATA", "PEER_DETAIL"),
            *("METRICS_DENY", "LISTEN_ADDRESS", "METRICS_PATH", "LOG_LEVEL"),
        )
        wrong = dict.fromkeys(names, "? ?")
        found = problems(wrong)
        self.assertEqual(list(wrong), [line.partition(":")[0] for line in found])
        caught = self.assertRaises(ConfigurationError, read_settings, wrong)
        self.assertEqual(found, str(caught).splitlines())

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
            caught = self.assertRaises(ConfigurationError, read_settings, environ)
            self.assertEqual(retryable, caught.retryable, environ)

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
        st.sampled_from(["", "peers=", "groups:", "ftp://", "[", "email,", "tcp:"]),
    )
    def test_long_values(self, name: str, secret: str, before: str) -> None:
        """Errors repeat only a few characters, unless of a path or URL."""
        parts = re.split("[,=]", before + secret)
        places = ("/", "./", "../", "~", "%")
        assume(not any(part.strip().startswith(places) for part in parts))
        for text in problems({**REQUIRED, name: before + secret}):
            known = SETTING_BY_NAME[name].allowed
            for at in range(len(secret) - MAX_SHOWN_CHARACTERS):
                part = secret[at : at + MAX_SHOWN_CHARACTERS + 1]
                self.assertNotIn(part, text.replace(known, ""))

    def test_misplaced_secrets(self) -> None:
        """A token or password in the wrong variable is not shown."""
        other, plain = "a-token-from-elsewhere", "plain_token_from_elsewhere"
        metrics = [(x, f"{start}{x}*") for x in (plain, CANARY) for start in ("", "x_")]
        cases = [(token, "METRICS_DENY", text) for token, text in metrics]
        for name in ("LISTEN_ADDRESS", "COLLECTORS", "REFRESH_INTERVALS", "LOG_LEVEL"):
            texts = (other, f"x,{other}", f"{other}=1s", f"me:{CANARY}@host:80")
            cases += [(other, name, text) for text in texts]
        for token, name, text in cases:
            environ = {"UPSTREAM_API_TOKEN": token, name: text}
            (problem,) = problems({**REQUIRED, **environ})
            self.assertNotIn(token, problem)
            self.assertNotIn(CANARY, problem)

    def test_thresholds(self) -> None:
        """An error in a file of thresholds names its place."""
        file = Path(self.mktemp())
        for text, reported in (
            ('{"days": {"login_soon": 0}}', "(days: login_soon: 0: Expected"),
            ("[]", "(Expected `object`, got `array`)"),
            ("\n", "(the file is empty)"),
            ("{" + " " * 2**20, "(the file has more than 1048576 bytes)"),
        ):
            file.write_text(text)
            [problem] = problems({**REQUIRED, "THRESHOLDS_FILE": str(file)})
            begin = f"THRESHOLDS_FILE: {quote_value(str(file))} is not "
            self.assertTrue(problem.startswith(begin))
            self.assertIn(reported, problem)

    def test_retired(self) -> None:
        """A former setting is refused with its replacement."""
        for name, instead in RETIRED.items():
            lines = [f"{name} is not a setting any more: {instead}"]
            self.assertEqual(lines, problems({**REQUIRED, name: "x"}))
            self.assertEqual([], problems({**REQUIRED, name: " "}))

    def test_no_such_metric(self) -> None:
        """A pattern that matches no metric of an enabled collector is an error."""
        words = "matches no metric of an enabled collector (see docs/metrics.md)"
        families = [family.name for one in COLLECTORS for family in one.families]
        for text in (
            "netbird_api_pear_*",
            "netbird_api_peers,netbird_api_pear_*",
            "netbird_api_PEERS",
            "netbird_api_group_member",  # of a collector that is off
            "netbird_api_up",  # our own
            "api_exporter_log_*",
        ):
            shown = quote_value(text.rpartition(",")[2], families)
            found = problems({**REQUIRED, "METRICS_DENY": text})
            self.assertEqual([f"METRICS_DENY: {shown} {words}"], found)
        for deny, more in (
            ("netbird_api_group_member", {"COLLECTORS": "default,memberships"}),
            ("netbird_api_peer_*", {"PEER_DETAIL": "none"}),  # it names no metrics
        ):
            self.assertEqual([], problems({**REQUIRED, **more, "METRICS_DENY": deny}))


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
            self.assertIsNone(error.__context__)
        else:
            self.assertIsInstance(found, Settings)
            self.assertNotIn(CANARY, repr(found))

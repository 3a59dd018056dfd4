"""The web configuration file, in the format of Prometheus' exporter-toolkit."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import yaml
from msgspec import Meta, Struct, field
from msgspec.structs import astuple
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from api_exporter.access.reloading import ReadFile, unreadable
from api_exporter.settings.errors import ConfigurationError, quote_value

if TYPE_CHECKING:
    from OpenSSL import SSL

MAX_BYTES = 64 * 1024
"""The maximum size of the file in bytes: 800 users. Parsing blocks the event loop."""

FILES = ("cert_file", "key_file", "client_ca_file")
"""Keys whose values are names of files, relative to the folder of this one."""

CIPHERS = {
    # Authenticated, with forward secrecy: clients of the last ten years have these.
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    # Without forward secrecy: Go itself lists them only if GODEBUG enables them.
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
}
"""OpenSSL's names of ciphers of TLS 1.2, by Go's names."""

CIPHERS_13 = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""Ciphers of TLS 1.3; Go and OpenSSL have the same names."""

BCRYPT_HASH = r"^\$2[abxy]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}\Z"
"""A bcrypt hash. The number is the cost: the logarithm of the number of rounds."""

User = Annotated[str, Meta(pattern=r"^[^:]*\Z")]
Hash = Annotated[str, Meta(pattern=BCRYPT_HASH)]
Line = Annotated[str, Meta(pattern=r"^[\x20-\x7e]*\Z")]
Cipher = Annotated[str, Meta(pattern=rf"^({'|'.join((*CIPHERS_13, *CIPHERS))})\Z")]
Boolean = Literal["true", "True", "yes", "on", "false", "False", "no", "off"]

Policy = Literal[
    "NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
]

_POLICIES: dict[Policy, str] = {
    "NoClientCert": "no client certificates",
    "VerifyClientCertIfGiven": "client certificates verified, but not required",
    "RequireAndVerifyClientCert": "client certificates required and verified",
}


class TlsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """TLS of the server, and its policy for client certificates."""

    cert_file: str | None = None
    key_file: str | None = None
    client_ca_file: str | None = None
    client_auth_type: Policy | None = None
    client_allowed_sans: Annotated[frozenset[str], Meta(min_length=1)] | None = None
    min_version: Literal["TLS12", "TLS13"] | None = None
    cipher_suites: tuple[Cipher, ...] | None = None
    prefer_server_cipher_suites: Boolean | None = None  # ignored, as by Go

    @property
    def description(self) -> str:
        return _POLICIES[self.client_auth_type or "NoClientCert"]

    @property
    def requests_certificates(self) -> bool:
        return self.client_auth_type not in {None, "NoClientCert"}

    @property
    def requires_certificates(self) -> bool:
        return self.client_auth_type == "RequireAndVerifyClientCert"


class Headers(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Headers of every response; an empty one is not sent."""

    hsts: Line = field(name="Strict-Transport-Security", default="")
    options: Literal["nosniff"] | None = field(
        name="X-Content-Type-Options", default=None
    )
    frame: Literal["deny", "sameorigin"] | None = field(
        name="X-Frame-Options", default=None
    )
    xss: Line = field(name="X-XSS-Protection", default="")
    csp: Line = field(name="Content-Security-Policy", default="")


class HttpConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of HTTP."""

    http2: Boolean | None = None  # ignored: there is no HTTP/2
    headers: Headers | None = None


class WebFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file. A key without a value counts as missing, as in Go."""

    tls_server_config: TlsConfig | None = None
    http_server_config: HttpConfig | None = None
    basic_auth_users: dict[User, Hash] | None = None


class WebConfig(Struct, frozen=True, kw_only=True):
    """The web configuration, with the hash of each user's password."""

    tls: TlsConfig | None
    headers: Mapping[str, str]
    users: Mapping[str, str]
    context: "SSL.Context | None" = None

    def __repr__(self) -> str:
        return "<web configuration>"


_REFUSED = {
    "rate_limit": "requests are not limited here: use a proxy or a firewall",
    **{
        f"tls_server_config.{key}": "PEM is not read from here: write it into a file,"
        f" and name that in {key}_file"
        for key in ("cert", "key", "client_ca")
    },
    "tls_server_config.max_version": "the newest version is always allowed",
    "tls_server_config.curve_preferences": "the curves cannot be chosen",
}

_BOOLEAN = "it must be true or false"

_ALLOWED = {
    "tls_server_config.client_auth_type": "it must be NoClientCert,"
    " VerifyClientCertIfGiven or RequireAndVerifyClientCert: other policies verify no"
    " certificate",
    "tls_server_config.client_allowed_sans": "it must be a list of at least one name:"
    " an empty list rejects all clients",
    "tls_server_config.min_version": "it must be TLS12 or TLS13: older versions are not"
    " secure",
    "tls_server_config.cipher_suites": "it must be a list; each must be one of "
    + ", ".join((*CIPHERS_13, *CIPHERS)),
    "tls_server_config.prefer_server_cipher_suites": _BOOLEAN,
    "http_server_config.http2": _BOOLEAN,
    "http_server_config.headers.X-Content-Type-Options": "it must be nosniff",
    "http_server_config.headers.X-Frame-Options": "it must be deny or sameorigin",
    **{
        f"http_server_config.headers.{name}": "it must be one line of ASCII"
        for name in (
            "Strict-Transport-Security",
            "X-XSS-Protection",
            "Content-Security-Policy",
        )
    },
    "basic_auth_users": "it must be a mapping of users, whose names have no colon, to"
    " bcrypt hashes of 60 characters",
}
"""The allowed values, by the place, where msgspec's own words do not name them."""

_NAMES = [
    info.encode_name
    for struct in (WebFile, TlsConfig, HttpConfig, Headers)
    for info in msgspec.structs.fields(struct)
]


def load(path: Path, read: ReadFile) -> WebConfig:
    """Load the file; raise ConfigurationError, which repeats no value."""
    try:
        content = read(path)
        text = content.decode()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: the file is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if len(content) > MAX_BYTES:
        raise ConfigurationError(f"{path}: the file has more than {MAX_BYTES} bytes")
    try:
        document = _parse(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        message = re.sub(r"'[^']{4,}'", "…", error.problem or "no YAML")
        raise ConfigurationError(f"{path}:{line}: {message}") from None
    except (yaml.YAMLError, ValueError, OverflowError):  # as of `\UFFFFFFFF`
        message = "the file contains a character that YAML forbids"
        raise ConfigurationError(f"{path}: {message}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: the file is nested too deeply") from None
    try:
        file = msgspec.convert({} if document is None else document, WebFile)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{path}: {_explain(str(error))}") from None
    tls = file.tls_server_config
    if tls is not None and not any(astuple(tls)):
        tls = None
    if tls is not None and (problems := _contradictions(tls)):
        raise ConfigurationError(*(f"{path}: tls_server_config.{x}" for x in problems))
    http = file.http_server_config or HttpConfig()
    return WebConfig(
        tls=tls,
        headers=msgspec.to_builtins(http.headers or Headers()),
        users=file.basic_auth_users or {},
    )


def _parse(text: str) -> object:
    """Return a YAML document, in which each scalar is a text or None."""

    @cache  # so that aliases cannot multiply
    def value(node: Node) -> object:
        if isinstance(node, SequenceNode):
            return [value(item) for item in node.value]
        if not isinstance(node, MappingNode):
            return None if node.tag == "tag:yaml.org,2002:null" else node.value
        found: dict[str, object] = {}
        for key, item in node.value:
            if not isinstance(key, ScalarNode) or key.value in found:
                problem = "a key must be a text that occurs once"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            found[key.value] = value(item)
        return found

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return None if root is None else value(root)


def _explain(message: str) -> str:
    """Return msgspec's message: the place first, no value, and what is allowed."""
    unknown = re.fullmatch(
        r"Object contains unknown field `(.*?)`"
        r"(?: - at `\$\.((?:tls|http)_server_config(?:\.headers)?)`)?",
        message,
        re.DOTALL,
    )
    if unknown is not None:
        key, section = unknown[1], unknown[2]
        place = f"{section}.{key}" if section else key
        if place in _REFUSED:
            return f"{place}: {_REFUSED[place]}"
        return f"{section or 'the file'}: no such key: {quote_value(key, _NAMES)}"
    what, _, at = message.partition(" - at `")
    place = re.sub(r".*\$\.?|\[.*|`", "", at)
    return f"{place or 'the file'}: {_ALLOWED.get(place, what)}"


def _contradictions(tls: TlsConfig) -> list[str]:
    problems = [f"{x}: it is missing" for x in FILES[:2] if not getattr(tls, x)]
    if tls.client_allowed_sans and not tls.requires_certificates:
        problems.append("client_allowed_sans: it needs RequireAndVerifyClientCert")
    if tls.client_ca_file and not tls.requests_certificates:
        problems.append("client_ca_file: it needs a client_auth_type that verifies it")
    return problems


def changes_needing_restart(before: WebConfig, now: WebConfig) -> list[str]:
    """Return the changes that need a restart.

    So a reload of a half-written file never disables authentication.
    """
    problems = []
    if (before.tls is None) != (now.tls is None):
        problems.append("tls_server_config: a reload cannot switch TLS on or off")
    elif before.tls is not None and now.tls is not None:
        kept = _certificate_checks(now.tls)
        problems += [
            f"tls_server_config.{key}: a reload cannot stop {message}"
            for message, key in _certificate_checks(before.tls).items()
            if message not in kept
        ]
    if before.users and not now.users:
        problems.append("basic_auth_users: a reload cannot remove all users")
    return [f"{problem}: restart the exporter" for problem in problems]


def _certificate_checks(tls: TlsConfig) -> dict[str, str]:
    if not tls.requires_certificates:
        return {}
    checks = {
        "requiring client certificates": "client_auth_type",
        "using client_ca_file": "client_ca_file",
        "checking client_allowed_sans": "client_allowed_sans",
    }
    return {message: key for message, key in checks.items() if getattr(tls, key)}

"""`tls_server_config` of the web configuration file, with Go's names for TLS."""

from collections.abc import Mapping, Sized
from pathlib import Path

from msgspec import Struct

from api_exporter.access.reloading import ReadFile
from api_exporter.access.yaml_document import Section
from api_exporter.settings.errors import quote_value

SECTION = "tls_server_config"

TEXT_KEYS = (
    "cert",
    "cert_file",
    "key",
    "key_file",
    "client_ca",
    "client_ca_file",
    "client_auth_type",
)
"""Keys for which an empty text is no value, as in Go."""

TLS_KEYS = (
    *TEXT_KEYS,
    "client_allowed_sans",
    "min_version",
    "max_version",
    "cipher_suites",
    "curve_preferences",
    "prefer_server_cipher_suites",
)


CIPHERS = {
    # Authenticated, with forward secrecy: clients of the last ten years have these.
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    # For clients without TLS 1.2 and the ciphers that came with it.
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
"""OpenSSL's names of ciphers of TLS 1.2 and older, by Go's names."""

DEFAULT_CIPHERS = tuple(CIPHERS.values())[:6]
OLD_CIPHERS = tuple(CIPHERS.values())[6:10]

CIPHERS_13 = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""Ciphers of TLS 1.3; Go and OpenSSL have the same names."""

CURVES = {
    "X25519": "X25519",
    "CurveP256": "P-256",
    "CurveP384": "P-384",
    "CurveP521": "P-521",
}

DEFAULT_CURVES = ("X25519", "P-256", "P-384")

NEW_CURVE = "X25519MLKEM768"
"""The first default curve if OpenSSL has it: it resists quantum computers."""

VERSIONS = {"TLS10": 0x301, "TLS11": 0x302, "TLS12": 0x303, "TLS13": 0x304}
"""TLS versions, with their numbers in the protocol."""


class ClientAuth(Struct, frozen=True):
    """A policy for client certificates.

    Attributes:
        requested: True if OpenSSL requests a certificate.
        required: True if clients without a certificate are rejected.
        verified: True if a certificate must be issued by a trusted authority.
    """

    description: str
    requested: bool = True
    required: bool = False
    verified: bool = False


_ANY = ClientAuth("client certificates required, but not verified", required=True)

CLIENT_AUTH = {
    "NoClientCert": ClientAuth("no client certificates", requested=False),
    "RequestClientCert": ClientAuth(
        "client certificates requested, but neither required nor verified"
    ),
    "RequireAnyClientCert": _ANY,
    "RequireClientCert": _ANY,  # the old name
    "VerifyClientCertIfGiven": ClientAuth(
        "client certificates verified, but not required", verified=True
    ),
    "RequireAndVerifyClientCert": ClientAuth(
        "client certificates required and verified", required=True, verified=True
    ),
}

REQUIRING_POLICIES = ("RequireAnyClientCert", "RequireAndVerifyClientCert")
"""Policies that reject clients without a certificate."""


class TlsConfig(Struct, frozen=True, kw_only=True):
    """The TLS settings of the server, and its policy for client certificates.

    Attributes:
        certificate: PEM, with the chain to the certificate authority.
        key: PEM.
        client_ca: PEM; None for the authorities that this machine trusts.
        allowed_sans: names of which client certificates must have one; empty for any.
        min_version: the number in the protocol.
        ciphers: OpenSSL's names, for TLS 1.2 and older; None disables these versions.
        ciphers_13: ciphers of TLS 1.3; empty for all.
        curves: OpenSSL's names; empty for the default.
        places: file, line and key of each given value, by the key's name.
    """

    certificate: bytes
    key: bytes
    client_ca: bytes | None
    client_auth: ClientAuth
    allowed_sans: frozenset[str]
    min_version: int
    max_version: int
    ciphers: tuple[str, ...] | None
    ciphers_13: tuple[str, ...]
    curves: tuple[str, ...]
    places: Mapping[str, str]

    def __repr__(self) -> str:
        return "<TLS>"

    @property
    def is_mutual(self) -> bool:
        """True for mutual TLS: clients need a certificate of a trusted authority."""
        return self.client_auth.required and self.client_auth.verified


def parse(root: Section, folder: Path, read: ReadFile) -> TlsConfig | None:
    """Parse the section; return None if it is empty or not valid.

    Args:
        folder: the base of relative file names.
    """
    section = root.section(SECTION, TLS_KEYS, TEXT_KEYS)
    document, node, found = section.document, section.node, section.found
    if not found or node is None:
        return None
    problem_count = len(document.problems)
    certificate, key = (_pem(section, name, folder, read) for name in ("cert", "key"))
    for name, pem in (("cert", certificate), ("key", key)):
        if pem is None:
            document.reject(node, SECTION, f"{name}_file, or {name}, is missing")
    client_ca = _pem(section, "client_ca", folder, read)
    auth = section.one_of("client_auth_type", CLIENT_AUTH, CLIENT_AUTH["NoClientCert"])
    if not auth.requested and client_ca is not None:
        message = "client_ca needs a client_auth_type that requests certificates"
        document.reject(node, SECTION, message)
    sans = section.texts("client_allowed_sans")
    if "client_allowed_sans" in found and (why := _check_sans(sans, auth)):
        section.reject("client_allowed_sans", why)
    low = section.one_of("min_version", VERSIONS, VERSIONS["TLS12"])
    high = section.one_of("max_version", VERSIONS, VERSIONS["TLS13"])
    if low > high:
        document.reject(node, SECTION, "min_version is newer than max_version")
    ciphers = section.texts("cipher_suites", (*CIPHERS_13, *CIPHERS))
    older = tuple(CIPHERS[name] for name in ciphers if name in CIPHERS)
    curves = section.texts("curve_preferences", CURVES)
    if ciphers and not older and high < VERSIONS["TLS13"]:
        section.reject(
            "cipher_suites", "max_version allows none of these cipher suites"
        )
    section.check_boolean("prefer_server_cipher_suites")  # Go accepts and ignores it
    if len(document.problems) > problem_count:
        return None
    if not ciphers:
        older = DEFAULT_CIPHERS + (OLD_CIPHERS if low < VERSIONS["TLS12"] else ())
    return TlsConfig(
        certificate=certificate or b"",
        key=key or b"",
        client_ca=client_ca,
        client_auth=auth,
        allowed_sans=frozenset(sans),
        min_version=low,
        max_version=high,
        ciphers=older or None,
        ciphers_13=tuple(name for name in ciphers if name in CIPHERS_13),
        curves=tuple(CURVES[name] for name in curves),
        places={
            name: f"{document.place(node)}: {SECTION}.{name}"
            for name, node in found.items()
        },
    )


def _check_sans(sans: Sized, auth: ClientAuth) -> str:
    """Return why names have no effect or reject all clients; "" if they are valid."""
    if not auth.required:
        return f"client_auth_type must be one of {', '.join(REQUIRING_POLICIES)}"
    return "" if sans else "an empty list rejects all clients: add a name"


def _pem(section: Section, name: str, folder: Path, read: ReadFile) -> bytes | None:
    key = f"{name}_file"
    if key not in section.found:
        return section.text(name).encode() if name in section.found else None
    file = section.text(key)
    try:
        return read(folder / file)
    except (OSError, ValueError) as error:
        message = error.strerror if isinstance(error, OSError) else str(error)
        place = section.document.place(section.found[key])
        where = "" if file.startswith("/") else f" in {folder}"
        problem = f"{place}: {SECTION}.{key}: {quote_value(file)}{where}: {message}"
        section.document.problems.append(problem)  # a retry may find it
        return b""

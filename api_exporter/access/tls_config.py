"""`tls_server_config`, checked, with the names that Go has for TLS."""

from collections.abc import Mapping, Sized
from pathlib import Path

from msgspec import Struct

from api_exporter.access.reloading import Read
from api_exporter.access.yaml_document import Section
from api_exporter.settings.errors import shown

SECTION = "tls_server_config"

TEXTS = (
    "cert",
    "cert_file",
    "key",
    "key_file",
    "client_ca",
    "client_ca_file",
    "client_auth_type",
)
"""Keys for which Go takes an empty text as none."""

KEYS = (
    *TEXTS,
    "client_allowed_sans",
    "min_version",
    "max_version",
    "cipher_suites",
    "curve_preferences",
    "prefer_server_cipher_suites",
)


CIPHERS = {
    # Authenticated, with forward secrecy: what clients of the last ten years have.
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    # What clients have that know neither TLS 1.2 nor what came with it.
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    # Without forward secrecy: Go itself lists them where GODEBUG asks for them.
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
}
"""Of TLS 1.2 and older."""

USUAL, OLD = tuple(CIPHERS.values())[:6], tuple(CIPHERS.values())[6:10]

CIPHERS_13 = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""Of TLS 1.3, where both have the same names."""

CURVES = {
    "X25519": "X25519",
    "CurveP256": "P-256",
    "CurveP384": "P-384",
    "CurveP521": "P-521",
}

USUAL_CURVES = ("X25519", "P-256", "P-384")
"""Without a wish."""

NEW_CURVE = "X25519MLKEM768"
"""Before these, where OpenSSL has it: what is recorded now stays unread later, too."""

VERSIONS = {"TLS10": 0x301, "TLS11": 0x302, "TLS12": 0x303, "TLS13": 0x304}
"""With their numbers on the wire."""


class ClientAuth(Struct, frozen=True):
    """What is asked of clients' certificates.

    Attributes:
        description: the same for people.
        asked: whether OpenSSL asks for one.
        required: whether nobody comes in without a certificate.
        verified: whether one that is shown must be of an authority.
    """

    description: str
    asked: bool = True
    required: bool = False
    verified: bool = False


_ANY = ClientAuth("client certificates required, but not verified", required=True)

CLIENT_AUTH = {
    "NoClientCert": ClientAuth("no client certificates", asked=False),
    "RequestClientCert": ClientAuth(
        "client certificates requested, but neither required nor verified"
    ),
    "RequireAnyClientCert": _ANY,
    "RequireClientCert": _ANY,  # its name of old
    "VerifyClientCertIfGiven": ClientAuth(
        "client certificates verified, but not required", verified=True
    ),
    "RequireAndVerifyClientCert": ClientAuth(
        "client certificates required and verified", required=True, verified=True
    ),
}

REQUIRED = ("RequireAnyClientCert", "RequireAndVerifyClientCert")
"""With these nobody comes in without a certificate."""


class TlsConfig(Struct, frozen=True, kw_only=True):
    """What connections are encrypted with, and whose certificates are taken.

    Attributes:
        certificate: PEM, with what leads to the authority.
        key: PEM.
        client_ca: PEM; None stands for the authorities that this machine trusts.
        allowed_sans: names, one of which a client's certificate must have, if any.
        min_version: as on the wire.
        ciphers: OpenSSL's names, of TLS 1.2 and older; None where none is wanted.
        ciphers_13: those of TLS 1.3; none stands for all.
        curves: OpenSSL's names; none stands for OpenSSL's choice.
        places: file, line and key of what was given, by the key's name.
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
    def verified(self) -> bool:
        """Whether nobody comes in without the certificate of an authority."""
        return self.client_auth.required and self.client_auth.verified


def parse(root: Section, folder: Path, read: Read) -> TlsConfig | None:
    """What the section asks for; None where it asks for nothing, or is wrong.

    Args:
        folder: names of files are relative to it.
    """
    section = root.section(SECTION, KEYS, TEXTS)
    document, node, found = section.document, section.node, section.found
    if not found or node is None:
        return None
    before = len(document.problems)
    certificate, key = (_pem(section, name, folder, read) for name in ("cert", "key"))
    for name, pem in (("cert", certificate), ("key", key)):
        if pem is None:
            document.reject(node, SECTION, f"{name}_file, or {name}, is missing")
    client_ca = _pem(section, "client_ca", folder, read)
    auth = section.one_of("client_auth_type", CLIENT_AUTH, CLIENT_AUTH["NoClientCert"])
    if not auth.asked and client_ca is not None:
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
    section.check_truth("prefer_server_cipher_suites")  # Go takes it, and heeds it not
    if len(document.problems) > before:
        return None
    if not ciphers:
        older = USUAL + (OLD if low < VERSIONS["TLS12"] else ())
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
    """Why names would change nothing, or keep everybody out; "" where they are good."""
    if not auth.required:
        return f"client_auth_type must be one of {', '.join(REQUIRED)}"
    return "" if sans else "an empty list rejects all clients: add a name"


def _pem(section: Section, name: str, folder: Path, read: Read) -> bytes | None:
    """What a file holds, or else what stands there itself; None without both."""
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
        problem = f"{place}: {SECTION}.{key}: {shown(file)}{where}: {message}"
        section.document.problems.append(problem)  # it may come yet: retryable
        return b""

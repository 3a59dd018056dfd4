"""`tls_server_config`: what it asks for, checked as far as words go."""

from collections.abc import Mapping, Sized
from pathlib import Path

from msgspec import Struct

from api_exporter.access import tls_names as names
from api_exporter.access.reloading import Read
from api_exporter.access.yaml_document import Section

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
    client_auth: names.ClientAuth
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
    auth = section.one_of("client_auth_type", names.CLIENT_AUTH, _NO_CLIENT_CERT)
    if not auth.asked and client_ca is not None:
        message = "client_ca without a client_auth_type that asks for certificates"
        document.reject(node, SECTION, message)
    sans = section.texts("client_allowed_sans")
    if "client_allowed_sans" in found and (why := _check_sans(sans, auth)):
        section.reject("client_allowed_sans", why)
    low = section.one_of("min_version", names.VERSIONS, names.VERSIONS["TLS12"])
    high = section.one_of("max_version", names.VERSIONS, names.VERSIONS["TLS13"])
    if low > high:
        document.reject(node, SECTION, "min_version is newer than max_version")
    ciphers = section.texts("cipher_suites", (*names.CIPHERS_13, *names.CIPHERS))
    older = tuple(names.CIPHERS[name] for name in ciphers if name in names.CIPHERS)
    curves = section.texts("curve_preferences", names.CURVES)
    if ciphers and not older and high < names.VERSIONS["TLS13"]:
        section.reject("cipher_suites", "max_version leaves none of them")
    section.check_truth("prefer_server_cipher_suites")  # Go takes it, and heeds it not
    if len(document.problems) > before:
        return None
    if not ciphers:
        older = names.USUAL + (names.OLD if low < names.VERSIONS["TLS12"] else ())
    return TlsConfig(
        certificate=certificate or b"",
        key=key or b"",
        client_ca=client_ca,
        client_auth=auth,
        allowed_sans=frozenset(sans),
        min_version=low,
        max_version=high,
        ciphers=older or None,
        ciphers_13=tuple(name for name in ciphers if name in names.CIPHERS_13),
        curves=tuple(names.CURVES[name] for name in curves),
        places={
            name: f"{document.place(node)}: {SECTION}.{name}"
            for name, node in found.items()
        },
    )


def _check_sans(sans: Sized, auth: names.ClientAuth) -> str:
    """Why names would change nothing, or keep everybody out; "" where they are good."""
    if not auth.required:
        return f"client_auth_type must be one of {', '.join(names.REQUIRED)}"
    return "" if sans else "an empty list allows nobody: name one, or leave the key out"


_NO_CLIENT_CERT = names.CLIENT_AUTH["NoClientCert"]


def _pem(section: Section, name: str, folder: Path, read: Read) -> bytes | None:
    """What a file holds, or else what stands there itself; None without both."""
    key = f"{name}_file"
    if key not in section.found:
        return section.text(name).encode() if name in section.found else None
    path = folder / section.text(key)
    try:
        return read(path)
    except (OSError, ValueError) as error:
        message = error.strerror if isinstance(error, OSError) else str(error)
        place = section.document.place(section.found[key])
        problem = f"{place}: {SECTION}.{key}: {path}: {message}"
        section.document.problems.append(problem)  # it may come yet: retryable
        return b""

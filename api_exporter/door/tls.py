"""`tls_server_config`: what it asks for, checked as far as words go."""

from collections.abc import Mapping, Sized
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from yaml.nodes import Node

from api_exporter.door import names
from api_exporter.door.document import Document
from api_exporter.door.live import Read

T = TypeVar("T")

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


class Tls(Struct, frozen=True, kw_only=True):
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
    client_auth: str
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
    def required(self) -> bool:
        """Whether nobody comes in without a certificate."""
        return self.client_auth in names.REQUIRED

    @property
    def verified(self) -> bool:
        """Whether nobody comes in without the certificate of an authority."""
        return self.client_auth == "RequireAndVerifyClientCert"


def tls(document: Document, node: Node | None, folder: Path, read: Read) -> Tls | None:
    """What the section asks for; None where it asks for nothing, or is wrong.

    Args:
        folder: names of files are relative to it.
    """
    found = document.section(node, SECTION, KEYS, TEXTS)
    if not found or node is None:
        return None
    section = _Section(document, found, folder, read)
    before = len(document.problems)
    certificate, key = section.pem("cert"), section.pem("key")
    for name, pem in (("cert", certificate), ("key", key)):
        if not pem and name not in found and f"{name}_file" not in found:
            document.wrong(node, SECTION, f"{name}_file, or {name}, is missing")
    given = "client_ca" in found or "client_ca_file" in found
    client_ca = section.pem("client_ca") if given else None
    auth = section.one_of("client_auth_type", names.CLIENT_AUTH, "NoClientCert")
    if auth == "NoClientCert" and given:
        words = "client_ca without a client_auth_type that asks for certificates"
        document.wrong(node, SECTION, words)
    sans = section.texts("client_allowed_sans")
    if "client_allowed_sans" in found and (why := _check_sans(sans, auth)):
        section.wrong("client_allowed_sans", why)
    low = section.one_of("min_version", names.VERSIONS, names.VERSIONS["TLS12"])
    high = section.one_of("max_version", names.VERSIONS, names.VERSIONS["TLS13"])
    if low > high:
        words = "min_version is newer than max_version"
        document.wrong(node, SECTION, words)
    ciphers = section.many("cipher_suites", (*names.CIPHERS_13, *names.CIPHERS))
    curves = section.many("curve_preferences", tuple(names.CURVES))
    if (
        ciphers
        and high < names.VERSIONS["TLS13"]
        and not set(ciphers) & {*names.CIPHERS}
    ):
        section.wrong("cipher_suites", "max_version leaves none of them")
    section.truth("prefer_server_cipher_suites")  # Go takes it, and heeds it not
    if len(document.problems) > before:
        return None
    older = tuple(names.CIPHERS[name] for name in ciphers if name in names.CIPHERS)
    if not ciphers:
        older = names.USUAL + (names.OLD if low < names.VERSIONS["TLS12"] else ())
    return Tls(
        certificate=certificate,
        key=key,
        client_ca=client_ca,
        client_auth=auth,
        allowed_sans=frozenset(san for san, _ in sans),
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


def _check_sans(sans: Sized, client_auth: str) -> str:
    """Why names would change nothing, or keep everybody out; "" where they are good."""
    if client_auth not in names.REQUIRED:
        return f"client_auth_type must be one of {', '.join(names.REQUIRED)}"
    return "" if sans else "an empty list allows nobody: name one, or leave the key out"


class _Section:
    """Values of the section, each with its own kind of mistake."""

    def __init__(
        self, document: Document, found: Mapping[str, Node], folder: Path, read: Read
    ) -> None:
        self._document = document
        self._found = found
        self._folder = folder
        self._read = read

    def pem(self, name: str) -> bytes:
        """What a file holds, or else what stands there itself; empty without both."""
        node = self._found.get(f"{name}_file")
        if node is None:
            text = self._document.text(self._found.get(name), f"{SECTION}.{name}")
            return text.encode()
        path = self._folder / self._document.text(node, f"{SECTION}.{name}_file")
        try:
            return self._read(path)
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            place = f"{self._document.place(node)}: {SECTION}.{name}_file"
            self._document.problems.append(f"{place}: {path}: {words}")
            return b""

    def one_of(self, name: str, allowed: Mapping[str, T], default: T) -> T:
        """What a word stands for."""
        node = self._found.get(name)
        if node is None:
            return default
        text = self._document.text(node, f"{SECTION}.{name}")
        if text not in allowed:
            words = f"it must be one of {', '.join(allowed)}, not {text[:50]!r}"
            self._document.wrong(node, f"{SECTION}.{name}", words)
        return allowed.get(text, default)

    def texts(self, name: str) -> list[tuple[str, Node]]:
        """The texts of a list."""
        return self._document.texts(self._found.get(name), f"{SECTION}.{name}")

    def many(self, name: str, allowed: tuple[str, ...]) -> list[str]:
        """Words of a list."""
        found = self.texts(name)
        for text, node in found:
            if text not in allowed:
                words = f"each must be one of {', '.join(allowed)}, not {text[:50]!r}"
                self._document.wrong(node, f"{SECTION}.{name}", words)
        return [text for text, _ in found]

    def truth(self, name: str) -> None:
        """True or false."""
        self._document.truth(self._found.get(name), f"{SECTION}.{name}")

    def wrong(self, name: str, words: str) -> None:
        """One mistake more."""
        self._document.wrong(self._found[name], f"{SECTION}.{name}", words)

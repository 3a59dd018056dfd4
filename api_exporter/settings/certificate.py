"""The client certificate with its key, and the certificate authorities: checked files.

All files may be replaced at any time. The libraries that parse them are imported only
if a setting names a file.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.token import read_setting_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.x509 import Certificate

    UsableKey = (
        RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey | Ed448PrivateKey
    )

T = TypeVar("T")

MAX_CERTIFICATE_BYTES = 4 * 1024 * 1024
"""Bytes of a file: a distribution's authorities take a quarter of a megabyte."""

_CERTIFICATE = re.compile(
    rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)
_KEY = re.compile(
    rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL
)


class ClientCertificate(Struct, frozen=True):
    """The exporter's certificate for a gateway.

    Attributes:
        chain: the client certificate, then its intermediate certificates.
        begins: when its validity begins, seconds since the epoch.
        ends: when it expires, seconds since the epoch.
    """

    key: "UsableKey"
    chain: "tuple[Certificate, ...]"
    begins: float
    ends: float

    def problem(self, now: float) -> str:
        """Return why the certificate is not valid at a time, or "" if it is."""
        if now >= self.ends:
            return f"the certificate expired on {_date(self.ends)}"
        if now < self.begins:
            return f"the certificate is not valid before {_date(self.begins)}"
        return ""


class ClientCertificateFiles(Struct, frozen=True):
    """The files of certificate and key; one file may hold both."""

    certificate: Path
    key: Path

    def read(self) -> ClientCertificate:
        """Return the current content; raises ValueError, which names the file."""
        chain, key = _read(_chain, self.certificate), _read(_key, self.key)
        leaf = chain[0]
        if key.public_key() != leaf.public_key():
            raise ValueError(
                f"the key in {self.key} does not belong to the certificate in"
                f" {self.certificate}"
            )
        begins, ends = leaf.not_valid_before_utc, leaf.not_valid_after_utc
        return ClientCertificate(key, chain, begins.timestamp(), ends.timestamp())


def pem_certificates(path: Path) -> list[bytes]:
    """Return the certificates of a file as PEM; raises ValueError if there is none."""
    found = _CERTIFICATE.findall(read_setting_file(path, MAX_CERTIFICATE_BYTES))
    if not found:
        raise ValueError("the file contains no certificate in PEM format")
    return found


def certificate_file(text: str) -> Path:
    """Return the path of a file with readable certificates."""
    path = Path(text)
    _chain(path)
    return path


def key_file(text: str) -> Path:
    """Return the path of a file with a readable key without a password."""
    path = Path(text)
    _key(path)
    return path


def authorities_file(text: str) -> Path:
    """Return the path of a file with authorities that OpenSSL can read."""
    from OpenSSL import crypto  # noqa: PLC0415

    path = Path(text)
    try:
        for pem in pem_certificates(path):
            crypto.load_certificate(crypto.FILETYPE_PEM, pem)
    except crypto.Error:
        raise ValueError("a certificate in the file cannot be read") from None
    return path


def _read(parse: Callable[[Path], T], path: Path) -> T:
    try:
        return parse(path)
    except ValueError as error:
        raise ConfigurationError.of(error, f"{path}: {error}") from None


def _chain(path: Path) -> "tuple[Certificate, ...]":
    from cryptography import x509  # noqa: PLC0415
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415

    found = pem_certificates(path)
    try:
        chain = tuple(map(x509.load_pem_x509_certificate, found))
        chain[0].public_key()
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        raise ValueError("a certificate in the file cannot be read") from None
    return chain


def _key(path: Path) -> "UsableKey":
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    found = _KEY.search(read_setting_file(path, MAX_CERTIFICATE_BYTES))
    if found is None:
        raise ValueError("the file contains no private key in PEM format")
    try:
        key = load_pem_private_key(found[0], None)
    except TypeError:
        raise ValueError("the private key is encrypted") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("the private key cannot be read") from None
    if not isinstance(
        key,
        rsa.RSAPrivateKey
        | ec.EllipticCurvePrivateKey
        | ed25519.Ed25519PrivateKey
        | ed448.Ed448PrivateKey,
    ):
        message = "the type of the private key is not supported"
        raise ValueError(message)  # noqa: TRY004 - it is the file that is wrong
    return key


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"

"""A certificate authority for tests, with any kind of certificate."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from twisted.internet.ssl import PrivateCertificate

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | x25519.X25519PrivateKey


class Issued:
    """A certificate with its key, as PEM."""

    def __init__(self, certificate: x509.Certificate, key: Key) -> None:
        self.certificate = certificate
        self.pem = certificate.public_bytes(Encoding.PEM)
        self._key = key
        self.key = self.key_pem(NoEncryption())
        self.ends = certificate.not_valid_after_utc.timestamp()

    def key_pem(self, encryption: KeySerializationEncryption) -> bytes:
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)

    def encrypted_key(self) -> bytes:
        return self.key_pem(BestAvailableEncryption(b"secret"))

    def server(self) -> PrivateCertificate:
        """Return the certificate for Twisted's endpoints."""
        loaded: PrivateCertificate = PrivateCertificate.loadPEM(self.pem + self.key)
        return loaded

    def write(self, folder: Path, name: str) -> None:
        """Write NAME.pem and NAME.key; each replaces its file in one step."""
        for suffix, content in ((".pem", self.pem), (".key", self.key)):
            new = folder / f"{name}{suffix}.new"
            new.write_bytes(content)
            new.rename(folder / f"{name}{suffix}")


_SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    **dict.fromkeys(
        (
            *("digital_signature", "content_commitment", "key_encipherment"),
            *("data_encipherment", "key_agreement", "encipher_only", "decipher_only"),
        ),
        False,
    ),
)


class Authority:
    """A certificate authority, as strict as Python 3.13 demands.

    Args:
        above: the authority that issued this one; by default it is self-signed.
    """

    def __init__(
        self, name: str = "authority", above: "Authority | None" = None
    ) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        issuer = above or self
        self._own = (
            _builder(self._name, issuer._name, self._key, days=30)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), False
            )
            .add_extension(issuer._key_identifier(), False)
            .add_extension(_SIGNS, True)
            .sign(issuer._key, hashes.SHA256())
        )
        self.pem = self._own.public_bytes(Encoding.PEM)

    def issue(
        self,
        name: str = "someone",
        *,
        sans: Sequence[x509.GeneralName] | None = None,
        key: Key | None = None,
        extension: x509.ExtensionType | None = None,
        begins: int = -1,
        days: int = 20,
    ) -> Issued:
        """Issue a certificate for a host name, an address or a person.

        Args:
            sans: names instead of the one that follows from the first; may be none.
            extension: instead of the extension with these names.
            begins: days until it becomes valid.
            days: days until it expires.
        """
        key = key or ec.generate_private_key(ec.SECP256R1())
        sans = [_shown(name)] if sans is None else sans
        builder = _builder(_name(name), self._name, key, begins=begins, days=days)
        builder = builder.add_extension(self._key_identifier(), False)
        if sans and extension is None:
            extension = x509.SubjectAlternativeName(sans)
        if extension is not None:
            builder = builder.add_extension(extension, False)
        return Issued(builder.sign(self._key, hashes.SHA256()), key)

    def _key_identifier(self) -> x509.AuthorityKeyIdentifier:
        own = self._key.public_key()
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(own)

    def server(self, key: Key | None = None) -> Issued:
        """Issue a certificate for this machine."""
        names = [_shown(name) for name in ("localhost", "127.0.0.1")]
        return self.issue("localhost", sans=names, key=key)


def _shown(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, *, begins: int = -1, days: int
) -> x509.CertificateBuilder:
    today = datetime.now(UTC).replace(microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today + timedelta(days=min(begins, days - 1)))
        .not_valid_after(today + timedelta(days=days))
    )


def written(directory: Path, name: str, *parts: bytes) -> str:
    """Write these to a file, and return its path."""
    path = directory / name
    path.write_bytes(b"".join(parts))
    return str(path)

"""An authority of our own, for certificates that are as a test wants them."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from twisted.internet.ssl import PrivateCertificate


class Issued:
    """A certificate with its key, as PEM."""

    def __init__(
        self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> None:
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
        """For Twisted's endpoints."""
        loaded: PrivateCertificate = PrivateCertificate.loadPEM(self.pem + self.key)
        return loaded


class Authority:
    """Vouches for whatever it is asked to.

    Args:
        above: the one that vouches for this one; it does so itself otherwise.
    """

    def __init__(self, name: str, above: "Authority | None" = None) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        issuer = above or self
        self._own = (
            _builder(self._name, issuer._name, self._key, days=30)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
            .sign(issuer._key, hashes.SHA256())
        )
        self.pem = self._own.public_bytes(Encoding.PEM)

    def issue(self, name: str, *, begins: int = -1, days: int = 20) -> Issued:
        """A certificate for a host name, an address or a person.

        Args:
            begins: in so many days.
            days: until its end.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            shown: x509.GeneralName = x509.IPAddress(ip_address(name))
        except ValueError:
            shown = x509.DNSName(name)
        certificate = (
            _builder(_name(name), self._name, key, begins=begins, days=days)
            .add_extension(x509.SubjectAlternativeName([shown]), False)
            .sign(self._key, hashes.SHA256())
        )
        return Issued(certificate, key)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    begins: int = -1,
    days: int,
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
    """The path of a file that holds these."""
    path = directory / name
    path.write_bytes(b"".join(parts))
    return str(path)

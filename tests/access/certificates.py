"""Certificate authorities for tests, and certificates that they issue."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Issued:
    """A certificate and its key, as PEM."""

    def __init__(self, certificate: x509.Certificate, key: Key) -> None:
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        self.key = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def write(self, folder: Path, name: str) -> None:
        """Write NAME.pem and NAME.key; each replaces its file in one step."""
        for suffix, content in ((".pem", self.certificate), (".key", self.key)):
            new = folder / f"{name}{suffix}.new"
            new.write_bytes(content)
            new.rename(folder / f"{name}{suffix}")


UNREADABLE = x509.UnrecognizedExtension(
    x509.SubjectAlternativeName.oid, bytes.fromhex("3004a3023000")
)
"""Names of a kind that cryptography does not read: an X.400 name."""

DAMAGED = x509.UnrecognizedExtension(
    x509.SubjectAlternativeName.oid, bytes.fromhex("30038201ff")
)
"""A DNS name that is not ASCII. OpenSSL accepts it, Go and cryptography do not."""


class Authority:
    """A certificate authority.

    Args:
        above: the authority that signs this one; without one it signs itself.
    """

    def __init__(
        self, name: str = "authority", above: "Authority | None" = None
    ) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self._serial = 1
        issuer = above or self
        made = _builder(self._name, issuer._name, self._key, 1).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = made.sign(issuer._key, hashes.SHA256())
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        *sans: x509.GeneralName,
        key: Key | None = None,
        name: str = "someone",
        extension: x509.ExtensionType | None = None,
    ) -> Issued:
        """Issue a certificate for these names, or with this extension."""
        self._serial += 1
        key = key or ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), self._name, key, self._serial)
        if sans:
            extension = x509.SubjectAlternativeName(sans)
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        return Issued(builder.sign(self._key, hashes.SHA256()), key)

    def server(self, key: Key | None = None) -> Issued:
        """Issue a certificate for this machine."""
        address = x509.IPAddress(ip_address("127.0.0.1"))
        return self.issue(x509.DNSName("localhost"), address, key=key)


def rsa_key() -> rsa.RSAPrivateKey:
    """Return a key of 2048 bits."""
    return rsa.generate_private_key(65537, 2048)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, serial: int
) -> x509.CertificateBuilder:
    today = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
    )


def lines(pem: bytes, indent: int = 4) -> str:
    """Return PEM as a block of YAML."""
    text: Sequence[str] = pem.decode().splitlines()
    return "|\n" + "\n".join(" " * indent + line for line in text)

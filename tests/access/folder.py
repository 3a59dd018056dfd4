"""A folder with all files that a web configuration file may name."""

from pathlib import Path
from unittest import TestCase

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from api_exporter.access.web_config import WebConfig, load
from api_exporter.settings.errors import ConfigurationError
from tests.authority import Authority, Issued

HASH = "$2b$04$Ilc/nUZAZLzVbFriO.zgX..0qx5u6bAaG2RBjwQKeasH6VuuaAlsy"
"""The hash of `secret`."""

SERVER = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"

REQUIRED = (
    f"{SERVER}  client_ca_file: ca.pem\n"
    "  client_auth_type: RequireAndVerifyClientCert\n"
)

UNREADABLE = x509.UnrecognizedExtension(
    x509.SubjectAlternativeName.oid, bytes.fromhex("3004a3023000")
)
"""Names of a kind that cryptography does not read: an X.400 name."""

DAMAGED = x509.UnrecognizedExtension(
    x509.SubjectAlternativeName.oid, bytes.fromhex("30038201ff")
)
"""A DNS name that is not ASCII. OpenSSL accepts it, Go and cryptography do not."""


def rsa_key() -> rsa.RSAPrivateKey:
    """Return a key of 2048 bits."""
    return rsa.generate_private_key(65537, 2048)


class Folder:
    """A folder with certificates and a web configuration file."""

    authority = Authority()
    other = Authority("another authority")
    server: Issued = authority.server()
    client: Issued = authority.issue("client", sans=[x509.DNSName("test3")])

    def __init__(self, test: TestCase, path: str) -> None:
        self.path = Path(path).absolute()
        self.path.mkdir(parents=True)
        self.file = self.path / "web.yml"
        self.server.write(self.path, "server")
        (self.path / "ca.pem").write_bytes(self.authority.pem)
        (self.path / "empty.pem").touch()
        self._test = test

    def write(self, text: str) -> Path:
        """Replace the web configuration file in one step."""
        new = self.path / "web.yml.new"
        new.write_text(text)
        return new.rename(self.file)

    def read(self, text: str) -> WebConfig:
        """Load a web configuration."""
        return load(self.write(text), Path.read_bytes)

    def problems(self, text: str) -> list[str]:
        """Return the errors of a web configuration, without the file's name."""
        try:
            self.read(text)
        except ConfigurationError as error:
            return [str(p).removeprefix(f"{self.file}:") for p in error.problems]
        return []

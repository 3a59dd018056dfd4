"""Proxies and certificates in the settings: accepted values and errors."""

import ssl
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.certificate import ClientCertificateFiles
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError, quote_value
from tests.authority import Authority, written

REQUIRED = {
    "UPSTREAM_API_URL": "https://api.example",
    "UPSTREAM_API_TOKEN": "nbp_c4nary",
}

AUTHORITY = Authority("our authority")
"""Made once: each of its keys takes a millisecond."""


class ReachTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        self.own = AUTHORITY.issue("exporter")

    def file(self, name: str, *parts: bytes) -> str:
        return written(self.folder, name, *parts)

    def account(self, **given: str) -> AccountSettings:
        return read_settings({**REQUIRED, **given}).accounts[""]

    def refused(self, **given: str) -> ConfigurationError:
        """Return the only problem."""
        error: ConfigurationError = self.assertRaises(
            ConfigurationError, read_settings, {**REQUIRED, **given}
        )
        self.assertEqual(1, len(error.problems), error)
        self.assertNotIn("c4nary", str(error))
        return error


class ProxyTests(ReachTestCase):
    def test_refused(self) -> None:
        """No error and no text form of the settings repeats a password."""
        for name in ("UPSTREAM_PROXY", "HTTPS_PROXY"):
            for value in (
                *("me:c4nary", "http://me:c4nary@", "socks5://me:c4nary@x:1"),
                "http://me:%zc4nary@x",
            ):
                error = self.refused(**{name: value})
                self.assertIn(f"{name}: its value is not allowed: it must", str(error))
                self.assertFalse(error.retryable)
        account = self.account(UPSTREAM_PROXY="http://me:c4nary@x:1")
        self.assertNotIn("c4nary", repr(account))

    def test_wrong_address(self) -> None:
        """If the API's address is wrong, that is the only error."""
        error = self.refused(UPSTREAM_API_URL="ftp://x", HTTPS_PROXY="socks5://x")
        self.assertIn("UPSTREAM_API_URL", str(error))


class CertificateTests(ReachTestCase):
    def test_identity(self) -> None:
        """One file may hold certificates and key, in any order."""
        for name, parts in (
            ("a", (self.own.pem, self.own.key)),
            ("b", (b"# mine\n", self.own.key, self.own.pem, AUTHORITY.pem)),
        ):
            path = self.file(name, *parts)
            files = self.account(UPSTREAM_CLIENT_CERT_FILE=path).client_certificate
            self.assertEqual(ClientCertificateFiles(Path(path), Path(path)), files)
            assert files is not None
            identity = files.read()
            self.assertEqual(self.own.ends, identity.ends)
            self.assertEqual(self.own.certificate, identity.chain[0])
            self.assertEqual("", identity.problem(self.own.ends - 1))
            self.assertIn("expired on 2", identity.problem(self.own.ends))
            self.assertIn("not valid before", identity.problem(identity.begins - 1))
        self.assertIsNone(self.account().client_certificate)

    def test_pair(self) -> None:
        """There may be many certificate authorities."""
        authorities = self.file("c", AUTHORITY.pem, b"\n", self.own.pem)
        account = self.account(
            UPSTREAM_CLIENT_CERT_FILE=self.file("a", self.own.pem),
            UPSTREAM_CLIENT_KEY_FILE=self.file("b", self.own.key),
            UPSTREAM_CA_FILE=authorities,
        )
        assert account.client_certificate is not None
        self.assertEqual(self.folder / "b", account.client_certificate.key)
        self.assertEqual(Path(authorities), account.upstream_ca_file)

    def test_each(self) -> None:
        """Each error names its file and the reason."""
        broken = b"-----BEGIN %b-----\nAAAA\n-----END %b-----\n"
        no_certificate = broken % (b"CERTIFICATE", b"CERTIFICATE")
        no_key = broken % (b"PRIVATE KEY", b"PRIVATE KEY")
        old = dsa.generate_private_key(2048).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        curve = bytes.fromhex("2a8648ce3d0301")  # \7 is P-256; \6 is not supported
        der = ssl.PEM_cert_to_DER_cert(self.own.pem.decode())
        der = der.replace(curve + b"\7", curve + b"\6")
        unknown = ssl.DER_cert_to_PEM_cert(der).encode()
        certificate, authorities = "UPSTREAM_CLIENT_CERT_FILE", "UPSTREAM_CA_FILE"
        key = "UPSTREAM_CLIENT_KEY_FILE"
        good = self.file("g", self.own.pem, self.own.key)
        for name, content, words in (
            (certificate, self.own.key, "contains no certificate in PEM format"),
            (certificate, no_certificate, "a certificate in the file cannot be read"),
            (certificate, unknown + self.own.key, "in the file cannot be read"),
            (authorities, b"x", "the file contains no certificate in PEM format"),
            (authorities, no_certificate, "a certificate in the file cannot be read"),
            (authorities, b"x" * (4 * 1024 * 1024 + 1), "more than 4194304 bytes"),
            (key, self.own.pem, "the file contains no private key in PEM format"),
            (key, no_key, "the private key cannot be read"),
            (key, self.own.encrypted_key(), "the private key is encrypted"),
            (key, old, "the type of the private key is not supported"),
        ):
            path = self.file("bad", content)
            given = {name: path} if name != key else {name: path, certificate: good}
            error = self.refused(**given)
            start = f"{name}: {quote_value(path)} is not allowed: it must be a readable"
            self.assertIn(start, str(error))
            self.assertIn(words, str(error))
            self.assertFalse(error.retryable)

    def test_waiting(self) -> None:
        """A missing or empty file is retryable."""
        for name in ("UPSTREAM_CLIENT_CERT_FILE", "UPSTREAM_CA_FILE"):
            for path, words in (
                (str(self.folder / "nowhere"), "(No such file or directory)"),
                (self.file("empty", b" \n"), "(the file is empty)"),
            ):
                error = self.refused(**{name: path})
                self.assertIn(words, str(error))
                self.assertTrue(error.retryable)

    def test_together(self) -> None:
        """A key that does not belong to the certificate is an error."""
        other = self.file("b", AUTHORITY.issue("exporter").key)
        own = self.file("a", self.own.pem)
        both = {"UPSTREAM_CLIENT_CERT_FILE": own, "UPSTREAM_CLIENT_KEY_FILE": other}
        error = self.refused(**both)
        self.assertIn(f"the key in {other} does not belong to the", str(error))
        error = self.refused(UPSTREAM_CLIENT_KEY_FILE=other)
        self.assertIn("UPSTREAM_CLIENT_KEY_FILE is set, but UPSTREAM", str(error))
        error = self.refused(UPSTREAM_CLIENT_CERT_FILE=own)
        words = "the file contains no private key in PEM format"
        self.assertEqual(f"UPSTREAM_CLIENT_CERT_FILE: {own}: {words}", str(error))

    def test_between(self) -> None:
        """The error of a file that vanishes after its check names the file."""
        own = Path(self.file("a", self.own.pem))
        missing = self.folder / "nowhere"
        for path in (missing, own):
            files = ClientCertificateFiles(own, missing)
            error = self.assertRaises(ValueError, files.read)
            self.assertEqual(f"{path}: No such file or directory", str(error))
            own.unlink(missing_ok=True)


class AccountFileTests(ReachTestCase):
    def accounts(self, text: str, **given: str) -> AccountSettings:
        """Return the account of a file, in an environment."""
        folder = self.folder / "accounts"
        folder.mkdir(exist_ok=True)
        (folder / "acme.conf").write_text(text)
        environ = {**REQUIRED, "ACCOUNTS_DIR": str(folder), **given}
        return read_settings(environ).accounts["acme"]

    def test_replaced(self) -> None:
        """An account's certificate replaces the environment's certificate and key."""
        other = AUTHORITY.issue("exporter")
        both = self.file("both", self.own.pem, self.own.key)
        found = self.accounts(
            f"UPSTREAM_CLIENT_CERT_FILE={both}\n",
            UPSTREAM_CLIENT_CERT_FILE=self.file("c", other.pem),
            UPSTREAM_CLIENT_KEY_FILE=self.file("k", other.key),
        )
        assert found.client_certificate is not None
        self.assertEqual(Path(both), found.client_certificate.key)

    def test_proxy(self) -> None:
        """An account may have its own proxy, or none."""
        for text, name, selected in (
            ("UPSTREAM_PROXY=x:1\n", "HTTPS_PROXY", "through x:1 (UPSTREAM_PROXY)"),
            ("UPSTREAM_PROXY=none\n", "UPSTREAM_PROXY", "direct"),
            ("", "HTTPS_PROXY", "through y:2 (HTTPS_PROXY)"),
        ):
            found = self.accounts(text, **{name: "y:2"})
            self.assertEqual(selected, str(found.proxy_selection))

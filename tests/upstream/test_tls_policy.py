"""TLS contexts are cached, and the client certificate is checked."""

import os
from errno import EACCES
from pathlib import Path

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock
from twisted.python.monkey import MonkeyPatcher
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.account import Account, SharedState
from api_exporter.ports import UpstreamError
from api_exporter.settings import environment
from api_exporter.settings.certificate import ClientCertificateFiles
from api_exporter.upstream.client import RELOAD_INTERVAL
from api_exporter.upstream.tls_policy import (
    CONTEXT_SECONDS,
    TlsPolicy,
    UpstreamCertificate,
)
from tests.authority import Authority
from tests.logbook import logbook
from tests.memory_reactor import MemoryReactorClock

NOW = 1_800_000_000.0
UNUSABLE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
READABLE = "api_exporter_client_certificate_readable"


class ContextsTests(SynchronousTestCase):
    def test_kept(self) -> None:
        """Connections to a host share a context for a minute; a reload ends it."""
        bundle = Path(self.mktemp())
        for named, system in ((bundle, "/nowhere"), (None, str(bundle))):
            self.patch(os, "environ", {**os.environ, "SSL_CERT_FILE": system})
            bundle.write_bytes(Authority("one").pem)
            clock = Clock()
            policy = TlsPolicy(named, None, clock.seconds)
            first = policy.creatorForNetloc(b"a.example", 443)
            self.assertIs(first, policy.creatorForNetloc(b"a.example", 8443))
            self.assertIsNot(first, policy.creatorForNetloc(b"b.example", 443))
            bundle.write_bytes(Authority("another").pem)
            clock.advance(CONTEXT_SECONDS - 1)
            self.assertIs(first, policy.creatorForNetloc(b"a.example", 443))
            clock.advance(1)
            second = policy.creatorForNetloc(b"a.example", 443)
            self.assertIsNot(first, second)
            self.assertIs(second, policy.creatorForNetloc(b"a.example", 443))
            policy.reload()
            self.assertIsNot(second, policy.creatorForNetloc(b"a.example", 443))
        for text, why in ((b"", "the file is empty"), (UNUSABLE, "unreadable")):
            bundle.write_bytes(text)
            with self.assertRaisesRegex(UpstreamError, f"{bundle}: .*{why}"):
                TlsPolicy(bundle, None, float).creatorForNetloc(b"a.example", 443)

    def test_words(self) -> None:
        """The server's certificate is described in one line."""
        words = "expires 2027-01-15 08:00 UTC, issued by CN=x"
        self.assertEqual(words, str(UpstreamCertificate("CN=x", 0, NOW)))


def _forbidden(*_: object) -> int:
    raise PermissionError(EACCES, "Permission denied")


class LookTests(SynchronousTestCase):
    def test_unreadable_once(self) -> None:
        """A certificate that could not be read once is read again."""
        own = Path(self.mktemp())
        issued = Authority("persons").issue("exporter", days=9999)
        own.write_bytes(issued.pem + issued.key)
        with MonkeyPatcher((os, "open", _forbidden)):
            policy = TlsPolicy(None, ClientCertificateFiles(own, own), lambda: NOW)
        self.assertEqual(f"{own}: Permission denied", policy.client_problem)
        self.assertEqual(("", ""), (policy.reload(), policy.client_problem))
        policy.creatorForNetloc(b"netbird.example", 443)
        later = TlsPolicy(None, ClientCertificateFiles(own, own), lambda: 2 * NOW)
        self.assertTrue(later.reload().startswith(f"{own}: "), later.reload())
        self.assertEqual("", later.client_problem)
        certificate = later.client_certificate
        self.assertGreater(certificate.ends if certificate else 0, NOW)
        own.write_text("")
        with self.assertRaises(UpstreamError):
            later.creatorForNetloc(b"netbird.example", 443)

    def test_noticed(self) -> None:
        """Each problem of the client certificate is logged once, within a minute."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        certificate, key = folder / "own.pem", folder / "own.key"
        persons = Authority("persons")
        own, other = (persons.issue("exporter", days=9999) for _ in range(2))
        certificate.write_bytes(own.pem)
        key.write_bytes(own.key)
        settings = environment.read_settings(
            {
                "UPSTREAM_API_URL": "http://10.0.0.1",
                "UPSTREAM_API_TOKEN": "secret",
                "UPSTREAM_CLIENT_CERT_FILE": str(certificate),
                "UPSTREAM_CLIENT_KEY_FILE": str(key),
            }
        )
        reactor = MemoryReactorClock()
        registry = CollectorRegistry()
        account = Account(
            settings.accounts[""],
            reactor,  # type: ignore[arg-type]
            shared=SharedState(settings.accounts.values()),
            registry=registry,
            now=lambda: NOW,
            jitter=lambda: 0.5,
            start_delay=0.0,
        )
        book = logbook(self)
        account.startService()
        self.assertEqual(([], 1.0), (book.lines(), registry.get_sample_value(READABLE)))

        def logged() -> list[str]:
            reactor.advance(RELOAD_INTERVAL)
            lines = [line for line in book.lines() if "certificate" in line]
            account.reload()  # as at SIGHUP: no second log line
            self.assertEqual(0.0, registry.get_sample_value(READABLE))
            return lines[-1:]

        key.write_bytes(other.key)
        wrong = f"the key in {key} does not belong to the certificate in {certificate}"
        start = "warning the client certificate is not valid: "
        self.assertEqual([start + wrong], logged())
        key.unlink()
        self.assertEqual([f"{start}{key}: No such file or directory"], logged())
        os.mkfifo(key)
        self.assertEqual([f"{start}{key}: the file is not a regular file"], logged())
        key.unlink()
        key.write_bytes(own.key)
        account.reload()
        self.assertEqual(1.0, registry.get_sample_value(READABLE))
        self.assertEqual(3, " ".join(book.lines()).count(start))
        account.stopService()
        reactor.advance(60.0)
        self.successResultOf(account.client.stopService())
        self.assertEqual([], reactor.getDelayedCalls())

"""TLS contexts, tested with handshakes in memory."""

import contextlib
from base64 import encodebytes
from ipaddress import ip_address
from pathlib import Path

import cryptography
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from api_exporter.access import tls
from api_exporter.access.tls import NO_RENEGOTIATION, make_context, set_curves
from api_exporter.settings.errors import ConfigurationError
from tests.access.folder import DAMAGED, SERVER, UNREADABLE, Folder, rsa_key
from tests.authority import Authority, Issued

VERIFIED = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n"


def client(**pinned: int) -> SSL.Context:
    """Return a client's context that trusts every server."""
    made = SSL.Context(SSL.TLS_CLIENT_METHOD)
    made.set_min_proto_version(pinned.get("low", 0x303))
    made.set_max_proto_version(pinned.get("high", 0x304))
    return made


def with_certificate(made: SSL.Context, issued: Issued) -> SSL.Context:
    """Give a context a certificate of its own."""
    made.use_certificate(issued.certificate)
    key = serialization.load_pem_private_key(issued.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    made.use_privatekey(key)
    return made


def shake(here: SSL.Context, there: SSL.Context) -> SSL.Connection | None:
    """Return the client's side of a connection; None if the handshake fails."""
    asking, asked = SSL.Connection(there), SSL.Connection(here)
    asking.set_connect_state()
    asked.set_accept_state()
    try:
        for _ in range(4):
            for one, other in ((asking, asked), (asked, asking)):
                with contextlib.suppress(SSL.WantReadError):
                    one.do_handshake()
                with contextlib.suppress(SSL.WantReadError):
                    other.bio_write(one.bio_read(1 << 16))
        asked.send(b"hello")
        asking.bio_write(asked.bio_read(1 << 16))
        assert asking.recv(5) == b"hello"
    except SSL.Error:
        return None
    return asking


class ContextTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.folder = Folder(self, self.mktemp())

    def context(self, more: str = "") -> SSL.Context:
        found = self.folder.read(SERVER + more).tls
        assert found is not None
        return make_context(found, self.folder.file, Path.read_bytes)

    def why_not(self, more: str) -> str:
        [problem] = self.assertRaises(ConfigurationError, self.context, more).problems
        return str(problem).removeprefix(f"{self.folder.file}:")

    def agreed(self, more: str, there: SSL.Context) -> bool:
        return shake(self.context(more), there) is not None

    def test_versions(self) -> None:
        """TLS 1.2 and 1.3 are accepted, or 1.3 alone; never an older version."""
        for low in (0x303, 0x304):
            more = f"  min_version: {'TLS12' if low == 0x303 else 'TLS13'}\n"
            for number in (0x301, 0x302, 0x303, 0x304):
                there = client(low=number, high=number)
                there.set_cipher_list(b"ALL:@SECLEVEL=0")
                self.assertEqual(low <= number, self.agreed(more, there), number)

    def test_ciphers(self) -> None:
        """Only listed ciphers are accepted, for each version from its own names."""
        if not hasattr(SSL.Context, "set_tls13_ciphersuites"):
            words = "suites of TLS 1.3 need pyOpenSSL 25.2 or newer; leave them out"
            suites = "  cipher_suites: [TLS_AES_128_GCM_SHA256]\n"
            self.assertIn(words, self.why_not(suites))
            raise SkipTest(words)
        some = "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,"
        some += " TLS_CHACHA20_POLY1305_SHA256]\n"
        for ciphers, expected in (
            (b"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
            (b"ECDHE-ECDSA-AES128-GCM-SHA256", None),
        ):
            there = client(high=0x303)
            there.set_cipher_list(ciphers)
            found = shake(self.context(some), there)
            agreed = None if found is None else found.get_cipher_name()
            self.assertEqual(expected, agreed)
        found = shake(self.context(some), client(low=0x304))
        assert found is not None
        self.assertEqual("TLS_CHACHA20_POLY1305_SHA256", found.get_cipher_name())
        only = "  cipher_suites: [TLS_AES_128_GCM_SHA256]\n"
        self.assertFalse(self.agreed(only, client(high=0x303)))
        self.assertTrue(self.agreed(only, client()))

    def test_no_more_than_needed(self) -> None:
        """No session is resumed, nothing compressed, and no handshake begun again."""
        made = self.context()
        for option in (SSL.OP_NO_COMPRESSION, NO_RENEGOTIATION, SSL.OP_NO_TICKET):
            self.assertEqual(option, made.set_options(0) & option)
        self.assertEqual(SSL.SESS_CACHE_OFF, made.get_session_cache_mode())

    def test_weak(self) -> None:
        """Ciphers without forward secrecy are accepted only if they are listed."""
        self.folder.authority.server(rsa_key()).write(self.folder.path, "server")
        for cipher, name in (
            (b"AES128-SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"),
            (b"AES256-GCM-SHA384", "TLS_RSA_WITH_AES_256_GCM_SHA384"),
        ):
            there = client(high=0x303)
            there.set_cipher_list(cipher)
            self.assertFalse(self.agreed("", there))
            self.assertTrue(self.agreed(f"  cipher_suites: [{name}]\n", there))

    def test_no_cipher(self) -> None:
        """Ciphers that OpenSSL does not have are reported at the start."""
        name = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
        self.patch(tls, "CIPHERS", {name: "NONSENSE"})
        self.assertIn(
            "tls_server_config.cipher_suites: the installed OpenSSL supports none",
            self.why_not(f"  cipher_suites: [{name}]\n"),
        )

    def need_curves(self) -> None:
        if int(cryptography.__version__.partition(".")[0]) < 47:
            raise SkipTest("this cryptography cannot choose curves")

    def test_curves(self) -> None:
        """The usual curves are accepted, and no others, also by an older OpenSSL."""
        self.need_curves()

        def older(made: SSL.Context, curves: bytes) -> bool:
            return b"MLKEM" not in curves and set_curves(made, curves)

        for known in (set_curves, older):
            self.patch(tls, "set_curves", known)
            for curve in (b"X25519", b"P-256", b"P-384", b"P-521"):
                there = client()
                self.assertTrue(set_curves(there, curve))
                self.assertEqual(curve != b"P-521", self.agreed("", there), curve)

    def test_old_cryptography(self) -> None:
        """Without the curves call OpenSSL chooses."""
        self.patch(tls, "SET_CURVES_FUNCTION", "no_such_call")
        self.assertTrue(self.agreed("", client()))

    def test_certificates(self) -> None:
        """Each policy accepts its own set of client certificates, as in Go."""
        own, others = self.folder.client, self.folder.other.issue()
        clients = (
            client(),
            with_certificate(client(), own),
            with_certificate(client(), others),
        )
        for policy, ca, *expected in (
            ("NoClientCert", "", True, True, True),
            ("VerifyClientCertIfGiven", "", True, False, False),
            ("VerifyClientCertIfGiven", "ca.pem", True, True, False),
            ("RequireAndVerifyClientCert", "ca.pem", False, True, False),
            ("RequireAndVerifyClientCert", "", False, False, False),
        ):
            more = f"  client_auth_type: {policy}\n  client_ca_file: '{ca}'\n"
            self.assertEqual(expected, [self.agreed(more, x) for x in clients], policy)

    def test_sans(self) -> None:
        """A certificate needs an allowed name of any kind, to the letter."""
        authority = self.folder.authority
        for name, text in (
            (x509.DNSName("test3"), "test3"),
            (x509.RFC822Name("a@example.org"), "a@example.org"),
            (x509.IPAddress(ip_address("10.1.2.3")), "10.1.2.3"),
            (x509.IPAddress(ip_address("fd00::1")), "fd00::1"),
            (x509.UniformResourceIdentifier("spiffe://x/y"), "spiffe://x/y"),
        ):
            there = with_certificate(
                client(), authority.issue(sans=[x509.DNSName("first"), name])
            )
            for allowed, expected in ((text, True), (f"{text}x", False)):
                more = f"{VERIFIED}  client_allowed_sans: [no, '{allowed}']\n"
                self.assertEqual(expected, self.agreed(more, there), more)
        nameless = with_certificate(client(), authority.issue(sans=[]))
        more = f"{VERIFIED}  client_allowed_sans: [test3]\n"
        self.assertFalse(self.agreed(more, nameless))
        self.assertFalse(self.agreed(more, client()))

    def test_no_sans(self) -> None:
        """Damaged or unsupported names are not allowed names, and raise no error."""
        damaged = Folder.authority.issue(extension=DAMAGED)
        for issued, more, expected in (
            (damaged, VERIFIED, (False, False)),
            (Folder.authority.issue(extension=UNREADABLE), VERIFIED, (True, False)),
            (Authority().issue("test3"), VERIFIED, (False, False)),
        ):
            there = with_certificate(client(), issued)
            named = f"{more}  client_allowed_sans: [test3]\n"
            found = self.agreed(more, there), self.agreed(named, there)
            self.assertEqual(expected, found, more)

    def test_partial_chain(self) -> None:
        """An intermediate authority, or a client's own certificate, may be trusted."""
        between = Authority("between", above=Folder.authority)
        below = between.issue("test3")
        for trusted, known in (
            (between.pem, below),
            (below.pem, below),
            (self.folder.client.pem, self.folder.client),
        ):
            (self.folder.path / "some.pem").write_bytes(trusted)
            more = VERIFIED.replace("ca.pem", "some.pem")
            sans = "  client_allowed_sans: [%s]\n"
            other = Folder.authority.issue("test3")
            self.assertTrue(self.agreed(more, with_certificate(client(), known)))
            self.assertTrue(
                self.agreed(more + sans % "test3", with_certificate(client(), known))
            )
            self.assertFalse(
                self.agreed(more + sans % "x", with_certificate(client(), known))
            )
            self.assertFalse(self.agreed(more, with_certificate(client(), other)))

    def test_no_callbacks(self) -> None:
        """A process that may not make callbacks reports it at the start."""

        def refuse(*_: object) -> None:
            raise MemoryError

        self.patch(SSL.Context, "set_verify", refuse)
        told = self.why_not("  client_auth_type: VerifyClientCertIfGiven\n")
        self.assertIn("tls_server_config: MemoryDenyWriteExecute", told)

    def test_unusable(self) -> None:
        """An invalid file is reported with its key, and without its content."""
        folder = self.folder
        (folder.path / "other.key").write_bytes(folder.client.key)
        (folder.path / "junk.pem").write_text("-----BEGIN SECRET-----\n")
        der = x509.load_pem_x509_certificate(folder.server.pem).public_bytes(
            serialization.Encoding.DER
        )
        version_5 = der.replace(b"\x02\x01\x02", b"\x02\x01\x04", 1)
        (folder.path / "odd.pem").write_bytes(
            b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n"
            % encodebytes(version_5)
        )
        key = serialization.load_pem_private_key(folder.server.key, None)
        locked = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"x"),
        )
        (folder.path / "locked.key").write_bytes(locked)
        ca = "  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: "
        certificate = " tls_server_config.cert_file"
        private = " tls_server_config.key_file"
        files = [
            *(("server.key", f"{x}.key", private) for x in ("other", "locked")),
            *(("server.key", f"{x}.pem", private) for x in ("junk", "empty")),
            *(
                ("server.pem", f"{x}.pem", certificate)
                for x in ("junk", "empty", "odd")
            ),
        ]
        none = " tls_server_config.client_ca_file: no cert"
        for text, expected in (
            *((SERVER.replace(old, new), words) for old, new, words in files),
            *((f"{SERVER}{ca}{x}.pem\n", none) for x in ("junk", "empty", "odd")),
        ):
            found = folder.read(text).tls
            assert found is not None
            with self.assertRaises(ConfigurationError) as raised:
                make_context(found, folder.file, Path.read_bytes)
            told = str(raised.exception).removeprefix(f"{folder.file}:")
            self.assertTrue(told.startswith(expected), told)
            self.assertNotIn("SECRET", told)

    def test_chain(self) -> None:
        """The chain of the certificate is sent."""
        file = self.folder.path / "server.pem"
        file.write_bytes(self.folder.server.pem + self.folder.authority.pem)
        found = shake(self.context(), client())
        assert found is not None
        chain = found.get_peer_cert_chain()
        assert chain is not None
        self.assertEqual(2, len(chain))

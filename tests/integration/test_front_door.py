"""The toolkit's own table of behaviours, written again, with curl and openssl."""

import re

from cryptography import x509

from api_exporter.settings.errors import ConfigurationError
from tests.access.certificates import DAMAGED, Authority, lines, rsa_key
from tests.access.folder import HASH, SERVER, Folder
from tests.integration.doors import DoorsTestCase
from tests.logbook import logbook

Row = tuple[str, str, tuple[str, ...], int]
"""A name, a file, how curl comes, and its answer's status, 0 for none."""

OLD = ("--tls-max", "1.1", "--tlsv1.0", "--ciphers", "ALL:@SECLEVEL=0")
ONE_CIPHER = ("--tls-max", "1.2", "--ciphers")
CIPHERS = "  cipher_suites:\n"
AUTH = f"{SERVER}  client_ca_file: ca.pem\n  client_auth_type: "
ANY, VERIFIED = (
    f"{AUTH}{kind}\n" for kind in ("RequireAnyClientCert", "RequireAndVerifyClientCert")
)
CERTIFICATE = ("--cert", "client.pem", "--key", "client.key")
HEADERS = "http_server_config:\n  headers:\n"
USERS = f'basic_auth_users:\n  alice: "{HASH}"\n  carol: "{HASH}"\n'

BEHAVIOURS: tuple[Row, ...] = (
    ("TLS, TLS client", SERVER, (), 200),
    ("TLS, TLS 1.1 client", SERVER, OLD, 0),
    ("TLS 1.1 where it is allowed", f"{SERVER}  min_version: TLS11\n", OLD, 200),
    (
        "some ciphers",
        f"{SERVER}{CIPHERS}  - TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\n",
        (*ONE_CIPHER, "ECDHE-ECDSA-AES128-GCM-SHA256"),
        200,
    ),
    (
        "no cipher in common",
        f"{SERVER}{CIPHERS}  - TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\n",
        (*ONE_CIPHER, "ECDHE-ECDSA-AES256-GCM-SHA384"),
        0,
    ),
    (
        "the server's order",
        f"{SERVER}  prefer_server_cipher_suites: true\n{CIPHERS}"
        "  - TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\n",
        (*ONE_CIPHER, "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256"),
        200,
    ),
    (
        "the client's order",
        f"{SERVER}  prefer_server_cipher_suites: false\n{CIPHERS}"
        "  - TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\n",
        (*ONE_CIPHER, "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256"),
        200,
    ),
    (
        "all curves",
        f"{SERVER}  curve_preferences: [CurveP256, CurveP384, CurveP521, X25519]\n",
        ("--curves", "P-521"),
        200,
    ),
    (
        "some curves",
        f"{SERVER}  curve_preferences: [CurveP521]\n",
        ("--curves", "P-256:P-521"),
        200,
    ),
    (
        "no curve in common",
        f"{SERVER}  curve_preferences: [CurveP521]\n",
        ("--curves", "P-256:X25519"),
        0,
    ),
    (
        "a cipher that HTTP/2 has not, without HTTP/2",
        f"{SERVER}{CIPHERS}  - TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA\n"
        "http_server_config: {http2: false}\n",
        (*ONE_CIPHER, "ECDHE-ECDSA-AES256-SHA"),
        200,
    ),
    (
        "the same with HTTP/2, which is not served: no mistake, unlike the toolkit's",
        f"{SERVER}{CIPHERS}  - TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA\n",
        (*ONE_CIPHER, "ECDHE-ECDSA-AES256-SHA"),
        200,
    ),
    ("any certificate, with one", ANY, CERTIFICATE, 200),
    ("any certificate, without", ANY, (), 0),
    ("verified, with one", VERIFIED, CERTIFICATE, 200),
    ("verified, without", VERIFIED, (), 0),
    ("SAN good", f"{VERIFIED}  client_allowed_sans: [bad, test3]\n", CERTIFICATE, 200),
    ("SAN bad", f"{VERIFIED}  client_allowed_sans: [bad]\n", CERTIFICATE, 0),
    ("limiter off", "rate_limit: {interval: 0, burst: 0}\n", (), 200),
    ("limiter of none", "rate_limit: {interval: 1s, burst: 0}\n", (), 429),
    ("no file's worth", "", (), 200),
)

REFUSED = (
    ("X-Content-Type-Options", f"{HEADERS}    X-Content-Type-Options: nosni\n"),
    ("X-Frame-Options", f"{HEADERS}    X-Frame-Options: denied\n"),
    ("Public-Key-Pins", f"{HEADERS}    Public-Key-Pins: x\n"),
)


class BehaviourTests(DoorsTestCase):
    async def test_table(self) -> None:
        """Each row is answered as the toolkit answers it."""
        for name, text, client, expected in BEHAVIOURS:
            self.serve(text)
            status, said = await self.ask(*client)
            self.assertEqual(expected, status, f"{name}: {said}")

    async def test_wrong_client(self) -> None:
        """Where one side speaks TLS and the other does not, nothing is answered."""
        for text, scheme in ((SERVER, "http"), ("", "https")):
            self.serve(text)
            more = ("--max-time", "1")
            self.assertEqual(0, (await self.ask(*more, scheme=scheme))[0])
            self.assertEqual(200, (await self.ask())[0])

    async def test_refused(self) -> None:
        """Headers that the exporter-toolkit refuses are refused, with their names."""
        for name, text in REFUSED:
            with self.assertRaises(ConfigurationError) as raised:
                self.serve(text)
            self.assertIn(
                f":3: http_server_config.headers.{name}: ", str(raised.exception)
            )

    async def test_inline(self) -> None:
        """Certificate, key and authority may stand in the file."""
        server = self.folder.server
        self.serve(
            f"tls_server_config:\n  cert: {lines(server.certificate)}\n"
            f"  key: {lines(server.key)}\n  client_ca: {lines(Folder.authority.pem)}\n"
            "  client_auth_type: RequireAndVerifyClientCert\n"
        )
        self.assertEqual(200, (await self.ask(*CERTIFICATE))[0])
        self.assertEqual(0, (await self.ask())[0])

    async def test_partial_chain(self) -> None:
        """An intermediate authority, or the client's certificate itself, will do."""
        between = Authority("between", above=Folder.authority)
        below = between.issue(x509.DNSName("test3"), name="below")
        below.write(self.folder.path, "below")
        shown = ("--cert", "below.pem", "--key", "below.key")
        for trusted in (between.pem, below.certificate):
            (self.folder.path / "some.pem").write_bytes(trusted)
            self.serve(VERIFIED.replace("ca.pem", "some.pem"))
            self.assertEqual(200, (await self.ask(*shown))[0])
            self.assertEqual(0, (await self.ask(*CERTIFICATE))[0])

    async def test_unreadable_certificate(self) -> None:
        """An unreadable client certificate is counted, and logged once a minute."""
        issued = Folder.other.issue(extension=DAMAGED)
        issued.write(self.folder.path, "strange")
        self.serve(ANY)
        book = logbook(self)
        for _ in range(3):
            strange = await self.ask("--cert", "strange.pem", "--key", "strange.key")
            self.assertEqual(0, strange[0], strange[1])
        self.assertEqual(200, (await self.ask(*CERTIFICATE))[0])
        self.assertEqual([], self.flushLoggedErrors())
        told = "warning rejected 127.0.0.1: the client certificate cannot be read"
        self.assertEqual([told], [line for line in book.lines() if "rejected" in line])
        counted = self.registry.get_sample_value("api_exporter_web_unauthorized_total")
        self.assertEqual(3, counted)

    async def test_all_ciphers(self) -> None:
        """Every cipher of Go's that the key allows can be had."""
        for key, kind in ((None, "ECDSA"), (rsa_key(), "RSA")):
            self.folder.authority.server(key).write(self.folder.path, "server")
            found = {
                "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
                "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
                "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
                "AES_128_CBC_SHA": "AES128-SHA",
                "AES_256_CBC_SHA": "AES256-SHA",
            }
            names = "".join(f"  - TLS_ECDHE_{kind}_WITH_{name}\n" for name in found)
            self.serve(SERVER + CIPHERS + names)
            for name in found.values():
                cipher = f"ECDHE-{kind}-{name}"
                status, said = await self.ask(*ONE_CIPHER, cipher)
                self.assertEqual(200, status, f"{cipher}: {said}")

    async def test_headers(self) -> None:
        """All five headers are on the answer, and none twice."""
        wanted = {
            "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "deny",
            "X-XSS-Protection": "1",
            "Content-Security-Policy": "frame-ancestors 'none'",
        }
        text = "".join(f'    {name}: "{value}"\n' for name, value in wanted.items())
        for more, expected in (("", 200), (USERS, 401)):
            self.serve(HEADERS + text + more)
            status, said = await self.ask()
            self.assertEqual(expected, status)
            for name, value in wanted.items():
                self.assertEqual(1, said.count(f"{name}: {value}\r\n"), said)

    async def test_limit(self) -> None:
        """An answer above the rate limit says when to retry."""
        self.serve(HEADERS + "    X-Frame-Options: deny\nrate_limit: {interval: 1h}\n")
        status, said = await self.ask()
        self.assertEqual(429, status)
        self.assertIn("Retry-After: 3600\r\n", said)
        self.assertIn("X-Frame-Options: deny\r\n", said)


class UsersTests(DoorsTestCase):
    async def test_table(self) -> None:
        """The toolkit's seven rows of users, with and without TLS."""
        for text, user, expected in (
            ("", "", 200),
            (USERS, "alice:secret", 200),
            (SERVER, "", 200),
            (SERVER + USERS, "alice:secret", 200),
            (SERVER + USERS, "carol:secret", 200),
            (SERVER + USERS, "alice:bad", 401),
            (SERVER + USERS, "nonexistent:nonexistent", 401),
            (SERVER + USERS, "nonexistent:fakepassword", 401),
            (SERVER + USERS, "", 401),
        ):
            self.serve(text)
            for _ in range(2):
                more = ("--user", user) if user else ()
                self.assertEqual(expected, (await self.ask(*more))[0], user)

    async def test_bypass(self) -> None:
        """A hash is not accepted in place of its password (CVE-2022-46146)."""
        self.serve(USERS)
        self.assertEqual(401, (await self.ask("--user", "alice:bad"))[0])
        self.assertEqual(200, (await self.ask("--user", "alice:secret"))[0])
        for user in (
            f"alice{HASH}:secret",
            f"alice:{HASH}secret",
            f"alice{HASH}secret:",
            f"alice:{HASH}",
        ):
            for _ in range(2):
                self.assertEqual(401, (await self.ask("--user", user))[0])


class ReloadTests(DoorsTestCase):
    async def subject(self) -> str:
        """The certificate that we are shown."""
        said = (await self.connect("-showcerts")).out
        found = re.search(r"-----BEGIN.*?END CERTIFICATE-----", said, re.DOTALL)
        return "" if found is None else found[0]

    async def test_file(self) -> None:
        """A changed file holds for the next connection, without a restart."""
        access = self.serve(f"{SERVER}rate_limit: {{interval: 1h}}\n")
        self.assertEqual(429, (await self.ask())[0])
        self.folder.write(SERVER)
        self.look()
        self.assertEqual(200, (await self.ask())[0])
        self.folder.write(f"{SERVER}  min_version: TLS13\n")
        self.look()
        self.assertEqual(0, (await self.ask("--tls-max", "1.2"))[0])
        self.folder.write(VERIFIED)
        self.look()
        self.assertEqual(0, (await self.ask())[0])
        self.assertEqual(200, (await self.ask(*CERTIFICATE))[0])
        self.assertTrue(access.is_valid)

    async def test_certificate(self) -> None:
        """A renewed certificate is shown to the next; a broken one never is."""
        access = self.serve(SERVER)
        before = await self.subject()
        self.folder.authority.server().write(self.folder.path, "server")
        self.look()
        renewed = await self.subject()
        self.assertNotEqual(before, renewed)
        self.assertIn("CERTIFICATE", renewed)
        (self.folder.path / "server.pem").write_text("-----BEGIN CERT")
        self.look()
        self.assertEqual(renewed, await self.subject())
        self.assertFalse(access.is_valid)

    async def test_other_kind(self) -> None:
        """While certificate and key are of different kinds, the old pair is shown."""
        access = self.serve(SERVER)
        before = await self.subject()
        renewed = self.folder.authority.server(rsa_key())
        (self.folder.path / "server.pem").write_bytes(renewed.certificate)
        self.look()
        self.assertEqual(200, (await self.ask())[0])
        self.assertEqual(before, await self.subject())
        self.assertFalse(access.is_valid)
        renewed.write(self.folder.path, "server")
        self.look()
        self.assertEqual(200, (await self.ask())[0])
        self.assertNotEqual(before, await self.subject())
        self.assertTrue(access.is_valid)
        self.assertEqual([], self.flushLoggedErrors())

    async def test_alpn(self) -> None:
        """HTTP/1.1 is agreed on and nothing else, before and after a change."""
        self.serve(SERVER)
        for _ in range(2):
            both = await self.connect("-alpn", "h2,http/1.1")
            self.assertIn("ALPN protocol: http/1.1", both.out)
            only = await self.connect("-alpn", "h2")
            self.assertIn("No ALPN negotiated", only.out)
            self.folder.write(f"{SERVER}  min_version: TLS12\n")
            self.folder.authority.server().write(self.folder.path, "server")
            self.look()


class ProtocolTests(DoorsTestCase):
    async def test_versions(self) -> None:
        """Only the allowed protocol versions are accepted."""
        names = {"TLS10": "-tls1", "TLS11": "-tls1_1", "TLS12": "-tls1_2"}
        names["TLS13"] = "-tls1_3"
        order = list(names)
        for low, high in (("TLS12", "TLS13"), ("TLS10", "TLS12"), ("TLS13", "TLS13")):
            self.serve(f"{SERVER}  min_version: {low}\n  max_version: {high}\n")
            for name, flag in names.items():
                said = (await self.connect(flag, "-cipher", "ALL:@SECLEVEL=0")).out
                spoken = re.search(r"^New, (TLS|SSL)v", said, re.MULTILINE) is not None
                spoken = spoken and "Cipher is (NONE)" not in said
                within = order.index(low) <= order.index(name) <= order.index(high)
                self.assertEqual(within, spoken, f"{low}-{high} {name}: {said}")

    async def test_no_more_than_needed(self) -> None:
        """Nothing is compressed, and no session is resumed."""
        self.serve(SERVER)
        for flag in ("-tls1_2", "-tls1_3"):
            said = (await self.connect(flag, "-comp", "-reconnect")).out
            self.assertIn("Compression: NONE", said)
            self.assertNotIn("Reused", said)
            self.assertIn("New, TLS", said)

    async def test_renegotiation(self) -> None:
        """A client cannot have the handshake begin again."""
        self.serve(SERVER)
        ended = await self.run_program(
            "/bin/sh",
            "-c",
            f"(sleep 0.3; echo R; sleep 2) | {self.openssl} s_client -tls1_2"
            f" -connect 127.0.0.1:{self.port} 2>&1",
        )
        self.assertIn("RENEGOTIATING", ended.out)
        self.assertRegex(ended.out, "no renegotiation|handshake failure|ssl/tls alert")
        self.assertEqual(200, (await self.ask())[0])

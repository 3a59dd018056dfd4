"""The toolkit's own table of behaviours, written again, with curl and openssl."""

from tests.access.folder import DAMAGED, HASH, SERVER, Folder
from tests.integration.doors import DoorsTestCase
from tests.logbook import logbook

Row = tuple[str, str, tuple[str, ...], int]
"""A name, a file, how curl comes, and its answer's status, 0 for none."""

OLD = ("--tls-max", "1.1", "--tlsv1.0", "--ciphers", "ALL:@SECLEVEL=0")
AUTH = f"{SERVER}  client_ca_file: ca.pem\n  client_auth_type: "
GIVEN, VERIFIED = (
    f"{AUTH}{kind}\n"
    for kind in ("VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
)
CERTIFICATE = ("--cert", "client.pem", "--key", "client.key")
USERS = f'basic_auth_users:\n  alice: "{HASH}"\n'

BEHAVIOURS: tuple[Row, ...] = (
    ("TLS, TLS client", SERVER, (), 200),
    ("TLS, TLS 1.1 client", SERVER, OLD, 0),
    ("given, with one", GIVEN, CERTIFICATE, 200),
    ("given, without", GIVEN, (), 200),
    ("verified, with one", VERIFIED, CERTIFICATE, 200),
    ("verified, without", VERIFIED, (), 0),
    ("a user", SERVER + USERS, ("--user", "alice:secret"), 200),
)


class BehaviourTests(DoorsTestCase):
    async def test_table(self) -> None:
        """Each row is answered as the toolkit answers it."""
        for name, text, client, expected in BEHAVIOURS:
            self.serve(text)
            status, said = await self.ask(*client)
            self.assertEqual(expected, status, f"{name}: {said}")

    async def test_wrong_client(self) -> None:
        """Plain HTTP to a TLS port gets a 400. TLS to a plain port gets no answer."""
        for text, scheme, expected in ((SERVER, "http", 400), ("", "https", 0)):
            self.serve(text)
            more = ("--max-time", "1")
            self.assertEqual(expected, (await self.ask(*more, scheme=scheme))[0])
            self.assertEqual(200, (await self.ask())[0])

    async def test_unreadable_certificate(self) -> None:
        """An unreadable client certificate is counted, and logged once a minute."""
        issued = Folder.authority.issue(extension=DAMAGED)
        issued.write(self.folder.path, "strange")
        self.serve(VERIFIED)
        book = logbook(self)
        for _ in range(3):
            strange = await self.ask("--cert", "strange.pem", "--key", "strange.key")
            self.assertEqual(0, strange[0], strange[1])
        self.assertEqual(200, (await self.ask(*CERTIFICATE))[0])
        self.assertEqual([], self.flushLoggedErrors())
        line = "warning rejected 127.0.0.1: the client certificate cannot be read"
        self.assertEqual([line], [line for line in book.lines() if "rejected" in line])
        counted = self.registry.get_sample_value("api_exporter_web_unauthorized_total")
        self.assertEqual(3, counted)


class ProtocolTests(DoorsTestCase):
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

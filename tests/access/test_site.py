"""Authentication of requests over HTTP in memory."""

from base64 import b64encode

from prometheus_client import CollectorRegistry
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.pages import notFound
from twisted.web.resource import Resource
from twisted.web.server import Request

from api_exporter.access.control import load
from api_exporter.access.passwords import MAX_WAITING, matches
from api_exporter.access.site import ProtectedSite
from api_exporter.ports import ALL_ACCOUNTS
from api_exporter.serving.channel import BodilessRequest
from api_exporter.serving.page import ReadOnlyPage
from api_exporter.serving.site import RESERVED_CONNECTIONS
from api_exporter.settings.environment import read_settings
from tests.access.folder import DAMAGED, HASH, SERVER, Folder
from tests.access.test_tls import client, with_certificate
from tests.logbook import logbook
from tests.web.connection import CLIENT, Connection, shake_hands

TOKEN, LIMITED = "token-that-opens-all", "token-that-is-limited"

USERS = f'basic_auth_users:\n  alice: "{HASH}"\n  bob: "{HASH}"\n'

SECRET = "secret details"


class Page(ReadOnlyPage):
    """A page that shows the accounts of the request."""

    status = 200

    def page(self, request: Request) -> str:
        assert isinstance(request, BodilessRequest)
        request.setResponseCode(self.status)
        accounts = request.accounts
        some = [name for name in ("acme", "beta", "gamma") if name in accounts]
        shown = "all" if accounts is ALL_ACCOUNTS else ",".join(some)
        return f"{SECRET} of {shown}\n"


class Broken(ReadOnlyPage):
    """A page with a defect."""

    def page(self, _request: Request) -> str:
        raise ZeroDivisionError


class Answer:
    """A response."""

    def __init__(self, answer: bytes) -> None:
        head, _, self.body = answer.decode().partition("\r\n\r\n")
        status, *lines = head.split("\r\n")
        self.status = int(status.split()[1]) if status else 0
        self.headers = [tuple(line.split(": ", 1)) for line in lines]

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


class AccessTestCase(SynchronousTestCase):
    """A site with pages, a folder for its files, and comparisons that the test ends."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.folder = Folder(self, self.mktemp())
        self.addCleanup(lambda: self.assertEqual([], self.clock.getDelayedCalls()))
        self.tree, self.ready = Resource(), Page()
        for path in (b"", b"health", b"metrics", b"sd"):
            self.tree.putChild(path, Page())
        self.tree.putChild(b"ready", self.ready)
        debug = notFound()
        debug.putChild(b"pprof", Page())
        self.tree.putChild(b"debug", debug)
        self.waiting: list[tuple[bytes, bytes, Deferred[bool]]] = []
        self.at_once = True

    def compare(self, password: bytes, digest: bytes) -> Deferred[bool]:
        answer: Deferred[bool] = Deferred()
        self.waiting.append((password, digest, answer))
        if self.at_once:
            answer.callback(matches(password, digest))
        return answer

    def site(
        self, web: str | None = None, tokens: str | None = None, open_paths: str = ""
    ) -> ProtectedSite:
        environ = {
            "UPSTREAM_API_URL": "https://x",
            "UPSTREAM_API_TOKEN": "x",
            "WEB_OPEN_PATHS": open_paths,
        }
        (self.folder.path / "acme.conf").touch()
        environ["ACCOUNTS_DIR"] = str(self.folder.path)
        if web is not None:
            environ["WEB_CONFIG_FILE"] = str(self.folder.write(web))
        if tokens is not None:
            file = self.folder.path / "tokens"
            file.write_text(tokens)
            environ["WEB_BEARER_TOKENS_FILE"] = str(file)
        self.registry = CollectorRegistry()
        access = load(
            read_settings(environ),
            self.clock.seconds,
            lambda: 9 + self.clock.seconds(),
            self.compare,
        )
        assert access is not None
        site = ProtectedSite(
            self.tree, self.clock, access, max_connections=100, registry=self.registry
        )
        site.timeOut = None
        site.startFactory()
        self.addCleanup(site.stopFactory)
        return site

    def ask(
        self, site: ProtectedSite, path: str = "/", shown: str = "", method: str = "GET"
    ) -> Answer:
        return Answer(self.begin(site, path, shown, method).heard())

    def begin(
        self,
        site: ProtectedSite,
        path: str = "/",
        shown: str = "",
        method: str = "GET",
        host: str = CLIENT.host,
    ) -> Connection:
        connection = Connection(site, IPv4Address("TCP", host, CLIENT.port))
        self.addCleanup(connection.lose)
        header = f"Authorization: {shown}\r\n" if shown else ""
        connection.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode())
        return connection

    def unauthorized(self) -> float | None:
        return self.registry.get_sample_value("api_exporter_web_unauthorized_total")


def basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


class StrangerTests(AccessTestCase):
    def test_asked(self) -> None:
        """Without credentials every path is a 401, whether the page exists or not."""
        site = self.site(USERS, TOKEN)
        for path in (
            *("/", "/metrics", "/sd", "/status.json", "/lookup"),
            *("/debug/pprof", "/nothing"),
            *("/%6detrics", "//metrics", "/metrics/", "http://x/metrics"),
            *("/health?account=acme", "/health/", "/health/.."),
        ):
            for method in ("GET", "HEAD", "POST"):
                found = self.ask(site, path, method=method)
                self.assertEqual(401, found.status, path)
                self.assertNotIn(SECRET, found.body)
                self.assertEqual(["no-store"], found.header("Cache-Control"))
                self.assertEqual(
                    [
                        'Basic realm="api-exporter", charset="UTF-8"',
                        'Bearer realm="api-exporter"',
                    ],
                    found.header("WWW-Authenticate"),
                )

    def test_probes(self) -> None:
        """Health probes without credentials receive the status alone."""
        site = self.site(USERS)
        for status, body in (
            (200, '{"status": "ok"}\n'),
            (503, '{"status": "unavailable"}\n'),
        ):
            self.ready.status = status
            found = self.ask(site, "/ready")
            self.assertEqual((status, body), (found.status, found.body))
        found = self.ask(site, "/health")
        self.assertEqual((200, '{"status": "ok"}\n'), (found.status, found.body))
        self.assertEqual(["api-exporter"], found.header("Server"))
        self.assertEqual("", self.ask(site, "/health", method="HEAD").body)
        self.assertEqual(405, self.ask(site, "/health", method="POST").status)
        self.assertEqual(0, self.unauthorized())

    def test_told(self) -> None:
        """Each is counted; the log has two lines a minute and no secret."""
        book = logbook(self)
        site = self.site(USERS, TOKEN)
        self.ask(site)
        for shown in ("Bearer wrong-t0ken", basic("al1ce", "wr0ng"), "Digest nonsense"):
            for path in ("/", "/health"):
                self.ask(site, path, shown)
        self.assertEqual(7, self.unauthorized())
        line = "warning rejected 10.1.2.3: no password or token"
        self.assertEqual([line], book.lines())
        self.clock.advance(60)
        count = "warning rejected 10.1.2.3: 7 times in one minute"
        self.assertEqual([line, count], book.lines())

    def test_open(self) -> None:
        """Without credentials only the pages of WEB_OPEN_PATHS are shown."""
        site, anyone = self.site(USERS, None, "/metrics,/sd,/lookup"), self.site("")
        for path in ("/lookup", "/lookup.csv"):  # which are off here
            missing = self.ask(site, path)
            self.assertEqual(404, missing.status)
            self.assertEqual(["no-store"], missing.header("Cache-Control"))
        for path in ("/metrics", "/sd", "/%6detrics", "/metrics?account=acme"):
            self.assertEqual(f"{SECRET} of all\n", self.ask(site, path).body)
        for path in ("/", "/metrics/", "/debug/pprof"):
            self.assertEqual(401, self.ask(site, path).status)
        for path in ("/metrics", "/health"):
            self.assertEqual(f"{SECRET} of all\n", self.ask(anyone, path).body)


class PasswordTests(AccessTestCase):
    def test_users(self) -> None:
        """Right passwords are accepted, wrong ones and unknown users never."""
        site = self.site(USERS)
        for user, password, expected in (
            ("alice", "secret", 200),
            ("bob", "secret", 200),
            ("alice", "Secret", 401),
            ("alice", "", 401),
            ("alice", "secret" + "x" * 80, 401),
            ("alice", "secret\0", 401),
            ("eve", "secret", 401),
            ("eve", "fakepassword", 401),
            ("", "", 401),
            ("alicé", "sécret", 401),
        ):
            for _ in range(2):
                found = self.ask(site, "/", basic(user, password))
                self.assertEqual(expected, found.status, (user, password))

    def test_defect(self) -> None:
        """A page that fails after a comparison is a 500, as without a password."""
        self.tree.putChild(b"broken", Broken())
        found = self.ask(self.site(USERS), "/broken", basic("alice", "secret"))
        self.assertEqual(500, found.status)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_gone(self) -> None:
        """A client that disconnects during a comparison gets no response."""
        self.at_once = False
        site = self.site(USERS)
        self.begin(site, "/", basic("alice", "secret")).lose()
        self.waiting[0][2].callback(True)
        self.assertEqual(200, self.ask(site, "/", basic("alice", "secret")).status)

    def test_busy(self) -> None:
        """If too many comparisons wait, a 503 says when to retry."""
        site = self.site(USERS, TOKEN)
        self.ask(site, "/", basic("alice", "secret"))
        self.at_once = False
        texts = map(str, range(MAX_WAITING + 1))
        guesses = [self.begin(site, "/", basic("alice", text)) for text in texts]
        found = self.ask(site, "/", basic("alice", "another"))
        self.assertEqual((503, ["5"]), (found.status, found.header("Retry-After")))
        for shown in (basic("alice", "secret"), f"Bearer {TOKEN}"):
            self.assertEqual(200, self.ask(site, "/", shown).status)
        self.waiting[1][2].callback(False)
        self.assertEqual(b"1", self.waiting[2][0])
        while not self.waiting[-1][2].called:
            self.waiting[-1][2].callback(False)
        self.assertEqual({401}, {Answer(guess.heard()).status for guess in guesses})

    def test_gibberish(self) -> None:
        """Authorization headers that cannot be read are wrong credentials."""
        site = self.site(USERS, TOKEN)
        self.ask(site, "/", basic("alice", "secret"))
        for shown in (
            *("Basic", "Basic !", "Bearer", "Digest x", "alice:secret"),
            f"Basic {b64encode(b'alice').decode()}",
            f"Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}",
        ):
            self.assertEqual(401, self.ask(site, "/", shown).status, shown)
        encoded = b64encode(b"alice:secret").decode()
        for shown in (f"bAsIc   {encoded} ", f"bearer  {TOKEN} "):
            self.assertEqual(200, self.ask(site, "/", shown).status, shown)

    def test_probe(self) -> None:
        """While passwords wait, a probe with one gets the status without rejection."""
        book = logbook(self)
        site = self.site(USERS)
        self.at_once = False
        self.begin(site, "/", basic("alice", "guess"))
        for _ in range(3):
            for path in ("/health", "/ready"):
                found = self.ask(site, path, basic("alice", "secret"))
                self.assertEqual('{"status": "ok"}\n', found.body)
        named = self.begin(site, "/health?account=acme", basic("alice", "secret"))
        self.assertEqual((b"", 0), (named.heard(), self.unauthorized()))
        self.assertEqual([], book.lines())
        self.waiting[0][2].callback(False)
        self.waiting[1][2].callback(True)
        self.assertEqual(200, Answer(named.heard()).status)
        found = self.ask(site, "/health", basic("alice", "secret"))
        self.assertIn(SECRET, found.body)
        self.assertEqual(1, self.unauthorized())

    def test_changed(self) -> None:
        """A new password is valid from the next request on, and the old one no more.

        The metrics show whether the newest file is in use, and when one last was read.
        """
        site = self.site(USERS)
        shown = basic("alice", "secret")
        other = f'basic_auth_users:\n  alice: "{HASH[:-1]}u"\n'
        for text, status, reloads in (
            (USERS, 200, (1, 9)),
            (other, 401, (1, 10)),
            ("nonsense: 1\n", 401, (0, 10)),
            (USERS, 200, (1, 12)),
        ):
            self.folder.write(text)
            self.assertEqual(status, self.ask(site, "/", shown).status, text)
            found = [
                self.registry.get_sample_value(f"api_exporter_web_config_last_{name}")
                for name in ("reload_successful", "reload_success_timestamp_seconds")
            ]
            self.assertEqual(reloads, tuple(found), text)
            self.clock.advance(1)


class TokenTests(AccessTestCase):
    def test_open_to_limited(self) -> None:
        """An open page shows a limited token its own accounts."""
        tokens = f"{TOKEN}\naccount=acme {LIMITED}\n"
        shown = f"Bearer {LIMITED}"
        shut, opened = self.site(None, tokens), self.site(None, tokens, "/metrics")
        self.assertEqual(403, self.ask(shut, "/metrics", shown).status)
        found = self.ask(opened, "/metrics", shown)
        self.assertEqual(f"{SECRET} of acme\n", found.body)

    def test_other_scheme(self) -> None:
        """A scheme that is not configured is neither offered nor accepted."""
        bearer, password = f"Bearer {TOKEN}", basic("alice", "secret")
        for web, tokens, shown, offered in (
            (USERS, None, bearer, "Basic"),
            ("", TOKEN, password, "Bearer"),
            (None, TOKEN, password, "Bearer"),
        ):
            found = self.ask(self.site(web, tokens), "/", shown)
            [challenge] = found.header("WWW-Authenticate")
            self.assertEqual((401, offered), (found.status, challenge.split()[0]))

    def test_limited(self) -> None:
        """A limited token shows its own accounts with any query."""
        site = self.site(None, f"acme account=acme,beta {LIMITED}\n{TOKEN}\n")
        own = 200, f"{SECRET} of acme,beta\n"
        shut = 403, "This token gives access to single accounts only.\n"
        none = 404, "There is no such account.\n"
        for path, expected in (
            ("/", own),
            ("/metrics", shut),
            ("/%6detrics", shut),
            ("/metrics?account=acme", own),
            ("/metrics?account=acme&account=beta", own),
            ("/metrics?account=acme&account=gamma", none),
            ("/metrics?account=gamma&account=acme", none),
            ("/metrics?account=gamma", none),
            ("/metrics?account=", none),
            ("/metrics?account=%61cme", own),
            ("/metrics/", none),
            ("/debug/pprof", shut),
            ("/debug/pprof?account=acme", shut),
            ("/debug%2Fpprof", shut),
            ("/health", (200, '{"status": "ok"}\n')),
        ):
            found = self.ask(site, path, f"Bearer {LIMITED}")
            self.assertEqual(expected, (found.status, found.body), path)
        found = self.ask(site, "/", f"Bearer {TOKEN}")
        self.assertEqual(f"{SECRET} of all\n", found.body)


class EncryptedTests(AccessTestCase):
    def test_encrypted(self) -> None:
        """Connections are encrypted if the web configuration has TLS."""
        encrypt = self.site(SERVER).encrypt
        assert encrypt is not None
        factory = encrypt(Factory.forProtocol(Protocol))
        self.assertIsInstance(factory, TLSMemoryBIOFactory)
        for sent, expected in (
            (b"GET / HTTP/1.1\r\n\r\n", b"HTTP request to an HTTPS server.\n"),
            (b"G\0", b"HTTP request to an HTTPS server.\n"),
            (b"\x16\x03\x01", b""),
        ):
            transport = StringTransport()
            protocol = factory.buildProtocol(IPv4Address("TCP", "127.0.0.1", 1))
            assert protocol is not None
            protocol.makeConnection(transport)
            protocol.dataReceived(sent)
            self.assertTrue(transport.value().endswith(expected))
            self.assertEqual(bool(expected), transport.disconnecting)

    def test_rejected(self) -> None:
        """Rejected client certificates are counted, and logged once a minute."""
        book = logbook(self)
        site = self.site(
            f"{SERVER}  client_auth_type: RequireAndVerifyClientCert\n"
            "  client_ca_file: ca.pem\n"
        )
        assert site.encrypt is not None
        damaged = with_certificate(client(), Folder.authority.issue(extension=DAMAGED))
        for _ in range(3):
            shake_hands(site.encrypt(site), damaged)
        self.assertEqual(3, self.unauthorized())
        line = "warning rejected 10.1.2.3: the client certificate cannot be read"
        self.assertEqual([line], book.lines())

    def test_no_room(self) -> None:
        """A connection above the limit is closed before its handshake."""
        site, transport = self.site(SERVER), StringTransport()
        site.max_connections = -RESERVED_CONNECTIONS
        assert site.encrypt is not None
        protocol = site.encrypt(site).buildProtocol(IPv4Address("TCP", "127.0.0.1", 1))
        assert protocol is not None
        protocol.makeConnection(transport)
        self.assertTrue(transport.disconnected)
        self.assertEqual(b"", transport.value())


class HeaderTests(AccessTestCase):
    HEADERS = "http_server_config:\n  headers:\n    X-Frame-Options: deny\n"

    def test_everywhere(self) -> None:
        """The headers are on every response: pages and refusals."""
        site = self.site(self.HEADERS + USERS)
        for path, shown, expected in (
            ("/", basic("alice", "secret"), 200),
            ("/", "", 401),
            ("/nothing", basic("alice", "secret"), 404),
            ("/health", "", 200),
        ):
            found = self.ask(site, path, shown)
            self.assertEqual(expected, found.status)
            self.assertEqual(["deny"], found.header("X-Frame-Options"), path)

    def test_no_room(self) -> None:
        """The headers are on the 503 of a full server, too, without credentials."""
        site = self.site(self.HEADERS + USERS)
        for number in range(100):
            client = IPv4Address("TCP", f"10.2.3.{number}", 1)
            site.connections.add(Connection(site, client).channel)
        found = self.ask(site)
        self.assertEqual(503, found.status)
        self.assertEqual(["deny"], found.header("X-Frame-Options"))


class CompareTests(SynchronousTestCase):
    def test_matches(self) -> None:
        """A password that bcrypt rejects is wrong; all kinds of hashes are known."""
        for password in (b"secret ", b"x" * 73, b"\0", b""):
            self.assertIs(False, matches(password, HASH.encode()))
        self.assertIs(False, matches(b"secret", b"no hash"))
        for kind in ("$2a$", "$2b$", "$2x$", "$2y$"):
            digest = HASH.replace("$2b$", kind).encode()
            self.assertIs(True, matches(b"secret", digest), kind)

"""`--health --group`, against a real socket and real documents."""

import re
import socket
import ssl

from api_exporter.checking.group_health import (
    GROUP_USAGE,
    GroupPeers,
    StatusAccount,
    StatusDocument,
    StatusGroup,
    judge,
)
from api_exporter.ports import UpstreamError
from api_exporter.web.status.status_json import StatusJson
from tests.checking.test_health import HealthTestCase
from tests.integration.programs import free_port
from tests.web.watched import Watched

NUMBERS = re.compile(r"( offline=\d+;\d*;\d*;0;\d+ age=\d+s;;;0)$")
"""The numbers of a line, as Nagios' plugins write them."""


def document(watched: Watched) -> str:
    return StatusJson({"": watched}, watched.context).document([watched])


class GroupHealthTests(HealthTestCase):
    def answer(self, body: str, status: str = "200 OK") -> int:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body.encode())}\r\n\r\n"
        return self.answered(f"{head}{body}".encode())

    def check(
        self, body: str, *arguments: str, status: str = "200 OK"
    ) -> tuple[int, str]:
        """Return the exit status and the line for a response."""
        address = f":{self.answer(body, status)}"
        return self.asked("--group", *arguments, LISTEN_ADDRESS=address)

    def test_group(self) -> None:
        """The statuses follow the thresholds, and the line has the numbers."""
        watched = Watched(peers=50, important_groups=("All", "nowhere"))
        watched.start(55)
        body = document(watched)
        default = "WARNING: group All: 17 of 49 peers offline, read 24 s"
        for arguments, status, words, numbers in (
            ((), 1, default, "0;"),
            (("--warning", "18"), 0, "OK: group All", "17;"),
            (("--warning=1", "--critical=3"), 2, "CRITICAL: group All", "0;2"),
            (("--critical", "18"), 0, "OK: group All", ";17"),
            (("--critical", "17"), 2, "CRITICAL: group All", ";16"),
        ):
            found, line = self.check(body, "All", *arguments)
            self.assertEqual((status, words), (found, line[: len(words)]))
            text, _, shown = line.partition("|")
            self.assertEqual(f" offline=17;{numbers};0;49 age=24s;;;0", shown)
            self.assertRegex(shown, NUMBERS)
            self.assertNotIn("=", text)
        self.assertIn(b"GET /status.json HTTP/1.1\r\n", self.heard)
        for group, words in (
            ("nowhere", "group nowhere does not exist"),
            ("ber", "group ber is not in IMPORTANT_GROUPS of the exporter"),
            ("a|b\nc", "group a b c is not in IMPORTANT_GROUPS of the exporter"),
        ):
            self.assertEqual((3, f"UNKNOWN: {words}"), self.check(body, group))

    def test_unknown(self) -> None:
        """An unknown state is UNKNOWN with the reason, never OK."""
        watched = Watched(important_groups=("All",))
        body = document(watched)
        words = "the peers are not known: they have not been read yet"
        line = f"UNKNOWN: group All: {words}"
        self.assertEqual((3, line), self.check(body, "All"))
        watched.start(55).down = UpstreamError("auth", "401: no | token")
        body = document(watched.advance(1_000))
        line = "UNKNOWN: group All: the peers are not known: 401: no   token"
        self.assertEqual((3, line), self.check(body, "All"))
        foreign = "the response is not that of /status.json"
        for text, status, words in (
            ("no such\nx", "401 Unauthorized", "401: no such"),
            ("plain", "400 Bad Request", "400: plain"),
            ("<html>", "200 OK", foreign),
            ("[]", "200 OK", foreign),
            ('{"accounts": 5}', "200 OK", foreign),
            ('{"accounts": [{"groups": [], "error": null}]}', "200 OK", foreign),
        ):
            found, line = self.check(text, "All", status=status)
            self.assertEqual(3, found)
            self.assertTrue(line.endswith(f"/status.json: {words}"), line)
        closed = f":{free_port()}"
        self.assertEqual(3, self.asked("--group", "All", LISTEN_ADDRESS=closed)[0])
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            found, line = self.asked("--group", "All", url, "0.2")
        words = f"UNKNOWN: {url}/status.json: no response within 0.2 s"
        self.assertEqual((3, words), (found, line))

    def test_usage(self) -> None:
        """Wrong arguments are UNKNOWN with the usage; a token is not repeated."""
        for arguments in (
            *(
                (),
                ("x", "--warning"),
                ("x", "--warning", "0"),
                ("x", "--critical", "1.5"),
            ),
            *(
                ("x", "--wrong", "1"),
                ("x", "/ready"),
                ("x", "http://localhost", "1", "2"),
            ),
        ):
            status, line = self.asked("--group", *arguments)
            self.assertEqual(3, status)
            self.assertTrue(line.endswith(GROUP_USAGE), line)
        file = self.directory / "token"
        file.write_text("nbp_secret secret\n")
        token = f"--token-file={file}"
        line = f"UNKNOWN: {file}: it is not a token"
        self.assertEqual((3, line), self.asked("--group", "x", token))
        file.unlink()
        line = f"UNKNOWN: {file}: No such file or directory"
        self.assertEqual((3, line), self.asked("--group", "x", token))
        status, line = self.asked("--group", "x", "-c", str(file))
        self.assertEqual(3, status)
        self.assertRegex(line, r"^UNKNOWN: .*No such file or directory$")

    def test_token(self) -> None:
        """The token of a file and the account's name are sent."""
        file = self.directory / "token"
        file.write_text("secret\n")
        watched = Watched(important_groups=("All",)).start()
        url = f"http://127.0.0.1:{self.answer(document(watched))}"
        options = (f"--token-file={file}", "--account=acme", "--warning=99", url)
        self.assertEqual(0, self.asked("--group=All", *options)[0])
        self.assertIn(b"GET /status.json?account=acme HTTP", self.heard)
        self.assertIn(b"\r\nAuthorization: Bearer secret\r\n", self.heard)

    def test_unix(self) -> None:
        """The URL may be a UNIX socket."""
        path = self.directory / "http.sock"
        watched = Watched(important_groups=("All",)).start()
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen()
        answer = f"HTTP/1.0 200 OK\r\n\r\n{document(watched)}"
        self.answering(listening, answer.encode())
        found, line = self.asked("--group=All", "--warning=99", f"unix:{path}")
        self.assertEqual((0, "OK: group All"), (found, line[:13]))

    def test_verified(self) -> None:
        """A server gets the token only if its certificate is valid."""
        port = self.secured(ssl.TLSVersion.TLSv1_3, ssl.CERT_NONE)
        file = self.directory / "token"
        file.write_text("secret\n")
        url = f"https://127.0.0.1:{port}"
        status, line = self.asked("--group=x", f"--token-file={file}", url)
        self.assertEqual(3, status)
        self.assertIn("CERTIFICATE_VERIFY_FAILED", line)

    def test_accounts(self) -> None:
        """One of several accounts must be chosen. The worst of several groups with the
        same name counts.
        """
        groups = [StatusGroup(str(n), "web", GroupPeers(5, n)) for n in (0, 3, 1)]
        account = StatusAccount(groups=groups, error=None, last_refresh_age_seconds=1)
        wanted = (3, "3 accounts: choose one with --account")
        self.assertEqual(wanted, judge(StatusDocument([account] * 3), "web"))
        status, line = judge(StatusDocument([account]), "web", 2)
        self.assertEqual((1, "group web: 3 of 5"), (status, line[:17]))

"""`--check` where another program answers in place of NetBird, for all paths or one."""

from tests.integration.exporter import GOOD, Answer, ExporterTestCase, Upstream, says

PAGE = b"<!DOCTYPE html><title>Just a moment...</title>"
DENIED = b'{"message":"permission denied","code":403}'
INVALID = b'{"message":"token invalid","code":401}'
CUT = b'[{"id":"a"'


class SpeakersTests(ExporterTestCase):
    def checked(self, path: str, answer: Answer) -> str:
        """Return the report of an upstream with an answer for a path, or for "*"."""
        upstream = Upstream(self, GOOD)
        upstream.faults[path] = lambda _: answer
        environ = self.reading(upstream.url, UPSTREAM_API_TOKEN=GOOD)
        ended = self.ended([*self.exporter, "--check"], environ)
        self.assertEqual("", ended.stderr)
        return ended.stdout

    def test_all_paths(self) -> None:
        """A web page is no refusal of NetBird, and no sentence is repeated."""
        token = "Give the exporter a service user with the role auditor"
        for answer, words, cure in (
            (says(403, PAGE, "text/html"), "answers 403 (server:", "Let /api/ thr"),
            (says(401, PAGE, "text/html"), "answers 401 (server:", "Let /api/ thr"),
            (says(429, b"slow", "text/plain"), "answers 429 (server: ", "Exempt /api/"),
            (says(502, PAGE, "text/html"), "answers 502 (server: ", "The log of the"),
            (says(200, b""), "an empty response: the proxy has no", "forward /api/ to"),
            (says(200, CUT), "the JSON is cut off", "update the exporter"),
            (says(403, DENIED), "403: permission denied", token),
            (
                says(401, INVALID),
                "401: the NetBird API rejects the",
                "The token is wrong",
            ),
        ):
            text = self.checked("*", answer)
            for sentence in (words, cure):
                self.assertEqual(1, text.count(sentence), (sentence, text))
            is_own = answer[2] in {DENIED, INVALID}
            self.assertEqual(
                not is_own and answer[0] != 200, "something in front of" in text
            )
            self.assertEqual(is_own, token in text or "The token is wrong" in text)

    def test_one_path(self) -> None:
        """A 401 for one list says nothing about a token that reads the others."""
        for answer, words in (
            (says(401, INVALID), "NetBird accepts the token for other paths"),
            (says(401, PAGE, "text/html"), "something in front of NetBird answers 401"),
        ):
            text = self.checked("/api/users", answer)
            self.assertRegex(text, r"(?m)^api/peers +fresh ")
            self.assertIn(words, text)
            self.assertNotIn("token is wrong", text)

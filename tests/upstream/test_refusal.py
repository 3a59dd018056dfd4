"""Responses other than 200: those of NetBird, and those of other programs."""

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from api_exporter.ports import UpstreamError
from api_exporter.upstream.advice import advice
from api_exporter.upstream.refusal import response_error
from tests.scripted import refusal

URL = "http://netbird.example/api/peers"
NOW = 1_800_000_000.0
JSON = "application/json; charset=UTF-8"
HTML = "text/html; charset=utf-8"
PAGE = b"<!DOCTYPE html><html><title>Just a moment...</title></html>"


def error_of(
    status: int,
    body: bytes | None = b"",
    media: str = "",
    *secrets: str,
    url: str = URL,
    **headers: str,
) -> UpstreamError:
    """Return the error of a response; underscores in header names are hyphens."""
    sent = Headers({name.replace("_", "-"): [v] for name, v in headers.items()})
    if media:
        sent.addRawHeader("Content-Type", media)
    return response_error(status, sent, body, url=url, now=NOW, secrets=secrets)


class NetBirdTests(SynchronousTestCase):
    def test_own(self) -> None:
        """NetBird's own errors keep their reason behind any proxy."""
        token = "the NetBird API rejects the token"
        gone = "invalid token: pat: vgw+iaq06i77= not found"
        role = "user role: billing_admin not found"
        for status, message, reason, words in (
            (401, "token invalid", "auth", f"401: {token}"),
            (401, "no valid authentication provided", "auth", f"401: {token}"),
            (404, gone, "auth", f"404: {token}"),
            (403, "permission denied", "forbidden", "403: permission denied"),
            (403, "Permission Denied", "forbidden", "403: Permission Denied"),
            (404, role, "forbidden", f"404: {role}"),
            (404, "peer x not found", "not_found", "404: peer x not found"),
            (412, "no database", "http_4xx", "412: no database"),
            (422, "invalid argument", "http_4xx", "422: invalid argument"),
            (429, "too many requests", "rate_limited", "429: too many requests"),
            (429, "", "rate_limited", "429"),
            (500, "internal server error", "http_5xx", "500: internal server error"),
        ):
            for media in (JSON, "text/plain; charset=utf-8", ""):
                body = refusal(status, message)
                error = error_of(status, body, media, Server="nginx/1.27")
                self.assertEqual((reason, words), (error.reason, str(error)))
                self.assertFalse(error.unsupported)
                self.assertEqual(status >= 500, error.retryable)
                self.assertNotIn("in front of", advice(error))

    def test_bare(self) -> None:
        """NetBird's responses without JSON: an unknown path, an unknown method."""
        path = "404: the NetBird API does not have this path"
        for status, body, words in (
            (404, b"404 page not found\n", path),
            (405, b"", "405"),
        ):
            error = error_of(status, body, "text/plain; charset=utf-8")
            self.assertEqual(words, str(error))
            self.assertTrue(error.unsupported)

    def test_unreadable(self) -> None:
        """Where the body cannot be read, the media type shows which program answers."""
        self.assertEqual("forbidden", error_of(403, None, JSON).reason)
        self.assertEqual("http_4xx", error_of(403, None, HTML).reason)

    def test_one_path(self) -> None:
        """A refused token that other paths accept is no matter of the token."""
        error = UpstreamError("auth", "401")
        self.assertIn("the expiry of", advice(error))
        found = advice(error, token_accepted=True)
        self.assertIn("in front of NetBird", found)
        self.assertNotIn("the expiry of", found)

    def test_role(self) -> None:
        """A role that NetBird does not know is no wrong address."""
        error = error_of(404, refusal(404, "user role: billing_admin not found"), JSON)
        self.assertIn("a service user with the role auditor", advice(error))
        self.assertNotIn("UPSTREAM_API_URL", advice(error))
        error = error_of(404, refusal(404, "group: x not found"), JSON)
        self.assertNotIn("UPSTREAM_API_URL", advice(error))


class ForeignTests(SynchronousTestCase):
    def test_foreign(self) -> None:
        """A foreign response says nothing about the token or NetBird's limit."""
        nginx = {"Server": "nginx"}
        basic = {**nginx, "WWW_Authenticate": 'Basic realm="x"'}
        kong = b'{"message":"No API key found in request"}'
        other = "JSON without NetBird's message and code"
        for status, body, media, headers, reason, facts in (
            (403, PAGE, HTML, nginx, "http_4xx", "server: nginx, a web page"),
            (403, PAGE, "", {}, "http_4xx", "a web page"),
            (403, b"", "", {}, "http_4xx", "an empty body"),
            (403, None, "text/plain", {}, "http_4xx", "an unreadable body"),
            (403, None, HTML, nginx, "http_4xx", "server: nginx, a web page"),
            (403, b"denied", "text/plain", {}, "http_4xx", "a text"),
            (
                *(401, b"<html>", HTML, basic, "http_4xx"),
                "server: nginx, a web page, asks for Basic authentication",
            ),
            (401, kong, JSON, {"Server": "kong"}, "http_4xx", f"server: kong, {other}"),
            (404, b"<html>", HTML, nginx, "not_found", "server: nginx, a web page"),
            (405, PAGE, HTML, {}, "http_4xx", "a web page"),
            (429, b"slow", "", {"Server": "cdn"}, "http_4xx", "server: cdn, a text"),
            (400, b"[]", "", {}, "http_4xx", other),
            (502, PAGE, HTML, nginx, "http_5xx", "server: nginx, a web page"),
            (504, b"", "", {}, "http_5xx", "an empty body"),
        ):
            error = error_of(status, body, media, **headers)
            words = f"something in front of NetBird answers {status} ({facts})"
            self.assertEqual((reason, words), (error.reason, str(error)))
            self.assertFalse(error.unsupported)
            self.assertEqual(status >= 500, error.retryable)
            self.assertIn("/api/", advice(error))
            for wrong in ("token is", "auditor", "role", "NetBird API gets more"):
                self.assertNotIn(wrong, advice(error))

    def test_limit(self) -> None:
        """A foreign 429 delays its own path: by Retry-After, or by 30 seconds."""
        for headers, seconds in (({}, 30.0), ({"Retry_After": "7"}, 7.0)):
            error = error_of(429, b"slow down", "", **headers)
            self.assertEqual(seconds, error.retry_after)
            self.assertIn("at most its interval", advice(error))

    def test_redirect(self) -> None:
        """A redirect names the place; https is missing only if nothing else differs."""
        prefix = "something in front of NetBird answers 302: "
        missing = "https is missing in UPSTREAM_API_URL"
        login = "a redirect to https://login.example"
        for location, words in (
            ("https://netbird.example/api/peers", missing),
            ("https://NETBIRD.example.:443/api/peers", missing),
            ("//netbird.example/api/peers", "a redirect to http://netbird.example"),
            ("/sub/api/peers", "a redirect to http://netbird.example/sub"),
            ("https://login.example/auth?rd=http://netbird.example/&s=c4nary", login),
            ("https://user:c4nary@login.example/", login),
            (
                "https://netbird.example:8443/api/peers",
                "a redirect to https://netbird.example:8443",
            ),
            (
                "https://netbird.example/login?c4nary",
                "a redirect to https://netbird.example/login",
            ),
            ("/login?next=c4nary", "a redirect to http://netbird.example/login"),
            ("", "a redirect without an address"),
            ("http://[", "a redirect without an address"),
            ("http://x:99999/", "a redirect without an address"),
        ):
            error = error_of(302, b"", "", Location=location)
            self.assertEqual(("redirect", prefix + words), (error.reason, str(error)))
            self.assertEqual("https://" in advice(error), words == missing)
        cached = error_of(304)
        self.assertIn("a cache", str(cached))
        self.assertNotIn("redirect", advice(cached))

    def test_http_2(self) -> None:
        """A server without HTTP/1.1 is named as such."""
        self.assertIn("HTTP/2 only", str(error_of(505)))

    def test_login(self) -> None:
        """A 407 has the reason `proxy_auth`; the proxy's own words are not repeated."""
        valid = "a valid user and password"
        other = "authentication by NTLM or Negotiate; only Basic is supported"
        for schemes, needed in (
            ([], valid),
            (["Basic realm=x"], valid),
            (["NTLM", "basic"], valid),
            (["c4nary"], valid),
            (["Negotiate abc", "ntlm"], other),
        ):
            headers = Headers({"Proxy-Authenticate": schemes})
            error = response_error(407, headers, b"", url=URL, now=0, secrets=())
            self.assertEqual("proxy_auth", error.reason)
            self.assertEqual(f"407: a proxy requires {needed}", str(error))
            self.assertFalse(error.retryable)

    def test_tls(self) -> None:
        """Answers of Go, nginx and Apache to a request without TLS are recognized."""
        tls = "the server speaks TLS on this port, not plain HTTP; write https:// in"
        for status, body in (
            (400, b"Client sent an HTTP request to an HTTPS server.\n"),
            (400, b"<p>The plain HTTP request was sent to HTTPS port</p>"),
            (400, b"You're speaking plain HTTP to an SSL-enabled server port.<br />"),
            (426, b""),
        ):
            error = error_of(status, body)
            line = f"{status}: {tls} UPSTREAM_API_URL"
            self.assertEqual(("tls", line), (error.reason, str(error)))
            if status == 400:  # from behind a proxy that speaks TLS itself
                behind = error_of(status, body, url="https://netbird.example/api/peers")
                self.assertEqual("http_4xx", behind.reason)
        self.assertEqual("http_4xx", error_of(400, b"nothing").reason)


class SecretsTests(SynchronousTestCase):
    @given(
        status=st.integers(100, 999).filter(lambda status: status != 200),
        media=st.sampled_from([JSON, HTML, "text/plain", ""]),
        form=st.sampled_from(["{}", "Bearer {}", "https://{}/", "/x/{}?{}", "a{}b"]),
        data=st.data(),
    )
    def test_masked(
        self, status: int, media: str, form: str, data: st.DataObject
    ) -> None:
        """No part of a response makes an error repeat a secret."""
        secret = "nbp_0canary0canary0canary0canary0c4PYgFe"
        password = "correct horse"
        sent = form.format(*[data.draw(st.sampled_from([secret, password]))] * 2)
        said = data.draw(st.sampled_from([{}, {"code": status}]))
        body = json.dumps({"message": sent, **said}).encode()
        names = ["Server", "Location", "X_Request_Id", "WWW_Authenticate"]
        names += ["Proxy_Authenticate", "Retry_After", "Date", "Upgrade"]
        headers = dict.fromkeys(names, sent)
        error = error_of(status, body, media or sent, secret, password, **headers)
        shown = f"{error.text_with_request_id} {advice(error)} {error.server_message}"
        for hidden in (secret, secret[4:-6], password):
            self.assertNotIn(hidden.lower(), shown.lower())

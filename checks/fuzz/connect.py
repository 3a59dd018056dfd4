"""Fuzz target: a proxy's responses to CONNECT.

* Only UpstreamError is raised. It names the proxy, but neither a word of the response
  nor the password.
* A tunnel is open after the last byte of a 2xx response, and not before.
* The result does not depend on how the bytes are split.
* Lines and status are those of a plain parser.
"""

from api_exporter.ports import UpstreamError
from api_exporter.settings.proxy import proxy
from api_exporter.upstream.tunnel import MAX_TUNNEL_HEAD_BYTES, is_open

PROXY = proxy("http://me:c4nary@proxy.example:3128")

SEEDS = (
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 204\nA: b\n\n",
    b"HTTP/1.1 407 c4nary\r\nProxy-Authenticate: NTLM c4nary\r\n"
    b"proxy-authenticate:\tNegotiate\r\n\r\n",
    b"HTTP/1.1 401 x\r\nProxy-Authenticate: Basic realm=c4nary\r\n\r\n",
    b"HTTP/1.1 403 no\r\n\r\n",
    b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nbody",
    b"SSH-2.0-x\r\n\r\n",
)


def result(received: bytes) -> bool | str:
    """Return whether the tunnel is open, or the text of the error."""
    try:
        return is_open(received, PROXY)
    except UpstreamError as error:
        assert "proxy.example:3128" in str(error), error
        assert "c4nary" not in str(error), error
        assert str(error).isprintable(), error
        assert len(str(error)) < 300, error
        return str(error)


def status(received: bytes) -> int | None:
    """Return the status of the last complete response, or None if there is none."""
    lines = received.replace(b"\r\n", b"\n").split(b"\n\n")
    for head in lines[:-1]:
        code = int(head.split(b"\n")[0].split(b" ")[1])
        if code >= 200:
            return code
    return None


def attempt(data: bytes) -> None:
    whole = result(data)
    if len(data) <= MAX_TUNNEL_HEAD_BYTES and isinstance(whole, bool):
        code = status(data)
        assert whole == (code is not None and code < 300), (whole, code)
    for size in range(min(len(data), 300)):
        part = result(data[:size])
        # It opened, and the rest came too early. Or it is refused, which stays so.
        if part is not False:
            assert isinstance(whole, str), (part, whole)
            return

"""Advice by reason of a failure: what is wrong, and what the operator does about it.

The status page, `/ready` and `--check` show the same text.
"""

from collections.abc import Mapping

from api_exporter.ports import Reason, UpstreamError

ADVICE: Mapping[Reason, str] = {
    "auth": "The token is wrong, expired or deleted."
    " Check the expiry of the service user's tokens in the NetBird dashboard. Put a"
    " valid token into UPSTREAM_API_TOKEN or UPSTREAM_API_TOKEN_FILE. Check that"
    " UPSTREAM_API_URL names the server that issued the token.",
    "forbidden": "The token is valid, but its user may not read this."
    " Give the exporter a service user with the role auditor. Check that the user is"
    " neither blocked nor waiting for approval.",
    "rate_limited": "The NetBird API gets more requests than it allows, so the"
    " exporter pauses all requests."
    " Wait some minutes. If the error returns, create a token for the exporter alone,"
    " lengthen REFRESH_INTERVALS or name fewer COLLECTORS.",
    "not_found": "The NetBird API has nothing at this path."
    " Check that UPSTREAM_API_URL names the management API, and that a proxy in front"
    " of the API forwards /api/.",
    "redirect": "The exporter follows no redirect, so that the token reaches no other"
    " host."
    " Set UPSTREAM_API_URL to the final address.",
    "http_4xx": "The NetBird API rejects the request."
    " Look at this time in the log of the management server.",
    "http_5xx": "The NetBird API has failed."
    " Look into the log of the management server. The exporter retries.",
    "timeout": "The response was not complete within the time limit."
    " Check that the management server runs, and that no firewall drops packets. If"
    " the server is only slow, increase HTTP_TIMEOUT.",
    "proxy": "The proxy between the exporter and the NetBird API refuses the"
    " connection."
    " Check that the proxy runs, and look into its log. Check its address in"
    " UPSTREAM_PROXY, or in HTTPS_PROXY and HTTP_PROXY. The proxy must allow CONNECT"
    " to the host and port of the NetBird API. UPSTREAM_PROXY=none uses no proxy.",
    "proxy_auth": "The proxy between the exporter and the NetBird API requires a"
    " login."
    " Put user and password into the address of the proxy, as in"
    " http://user:password@proxy.example:3128. Write special characters in percent"
    " encoding (%40 for @). The exporter supports Basic authentication only.",
    "dns": "The host name in UPSTREAM_API_URL has no address, or no name server"
    " answers."
    " Check its spelling, then ask the resolver of this machine with `getent hosts`.",
    "connect": "The connection failed or broke."
    " Check that the management server runs, that UPSTREAM_API_URL has the right port,"
    " and https where the server speaks TLS. Check that no firewall blocks the"
    " connection.",
    "tls": "TLS failed: a certificate is not trusted or not usable, or only one side"
    " speaks TLS 1.2 or later."
    " Write http:// in UPSTREAM_API_URL if the server speaks plain HTTP, and https://"
    " if it speaks TLS. Check name, expiry and issuer of the server's certificate. If"
    " your own certificate authority issued it, set UPSTREAM_CA_FILE. If a gateway"
    " requires a client certificate, set UPSTREAM_CLIENT_CERT_FILE.",
    "decode": "The response is not what the NetBird API promises."
    " Check that UPSTREAM_API_URL names the API and not a web page. If it does, the"
    " management server may be newer than this exporter: update the exporter.",
    "too_large": "The response is longer than that of any known network, or the"
    " metrics page is longer than PAGE_MAX_BYTES."
    " Check that UPSTREAM_API_URL names the management API. If a list is too long,"
    " increase LIST_MAX_RECORDS. If the page is too long,"
    " look for objects with long names, or increase PAGE_MAX_BYTES. If the resource is"
    " agent_consumption, which NetBird never shortens, set"
    " REFRESH_INTERVALS=agent_consumption=off.",
    "log_file": "The exporter cannot write ACCESS_LOG_FILE or its cursor, so it"
    " requests no rows."
    " Check that the folder exists and that the exporter's user may write there. Check"
    " that the disk has room, and that no other process writes to the file. NetBird"
    " keeps the rows, and the exporter retries.",
    "internal": "The exporter has a bug, or too little memory."
    " Look for the traceback in its log, and report it. If the traceback is about"
    " memory, increase the memory limit.",
}
"""Advice by reason, in the order of `ports.REASONS`; the problem comes first."""


_ONE_PATH = (
    "NetBird accepts the token for other paths, so the token is valid."
    " Check whether something in front of NetBird handles this path on its own: let all"
    " of /api/ through."
)


def advice(error: UpstreamError, *, token_accepted: bool = False) -> str:
    """Return what is wrong and what to do about it, in one line."""
    if error.reason == "auth" and token_accepted:
        return _ONE_PATH
    return error.cure or ADVICE[error.reason]

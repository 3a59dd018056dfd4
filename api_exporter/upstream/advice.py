"""Advice: what is wrong where the upstream cannot be read, and what to do, by reason.

Each begins with what it is that went wrong. The status page, `/ready` and `--check`
tell the same.
"""

from collections.abc import Mapping

from api_exporter.ports import Reason, UpstreamError

ADVICE: Mapping[Reason, str] = {
    "auth": "The token is wrong, has expired or was deleted."
    " Check that it has not expired: NetBird's dashboard lists every"
    " service user's access tokens and when they end. Put a valid one into"
    " UPSTREAM_API_TOKEN or UPSTREAM_API_TOKEN_FILE, and make sure that"
    " UPSTREAM_API_URL names the server that issued it.",
    "forbidden": "The token is valid, but its user may not read this."
    " Give the exporter a service user with the role auditor, and check"
    " that the user is neither blocked nor waiting for approval.",
    "rate_limited": "The upstream gets more requests than it allows, so all of ours"
    " pause for a while."
    " Wait some minutes. If it comes back, give the exporter a token that"
    " nothing else uses, lengthen REFRESH_INTERVALS or name fewer COLLECTORS.",
    "not_found": "The upstream has nothing at this path."
    " Check that UPSTREAM_API_URL names the management API, and that a proxy"
    " in front of it passes /api/ on.",
    "redirect": "The upstream sends us elsewhere, where the token may not go."
    " Set UPSTREAM_API_URL to the address where the redirects end; often"
    " https is missing.",
    "http_4xx": "The upstream, or a proxy in front of it, does not like the request."
    " Look for this moment in the logs of both.",
    "http_5xx": "The upstream, or a proxy in front of it, is in trouble itself."
    " Look into the log of the management server. The exporter goes on"
    " trying.",
    "timeout": "No complete answer came in time."
    " Check that the upstream runs, and that no firewall between drops"
    " packets. If it only is slow, lengthen HTTP_TIMEOUT.",
    "proxy": "The proxy on the way to the upstream does not let us through."
    " Check that the proxy runs, that UPSTREAM_PROXY, or HTTPS_PROXY and"
    " HTTP_PROXY, have its address, and look into its log. It must allow CONNECT to"
    " the upstream's host and port. UPSTREAM_PROXY=none goes without it.",
    "proxy_auth": "The proxy on the way to the upstream wants a login."
    " Put user and password into the proxy's address, as in"
    " http://user:password@proxy.example:3128, with %40 for @ and the like. If"
    " they are there, one of them is wrong. Only Basic can be done.",
    "dns": "The host name in UPSTREAM_API_URL has no address."
    " Check how it is spelt, then ask this machine's resolver with"
    " `getent hosts`.",
    "connect": "There is no connection, or it broke off."
    " Check that the upstream runs, that UPSTREAM_API_URL has the right port"
    " and that no firewall is in the way.",
    "tls": "The upstream's certificate cannot be trusted, or ours cannot be used,"
    " or it speaks no TLS, or only one older than 1.2."
    " Check the certificate's name, its end and its issuer. If an authority"
    " of your own has issued it, name that one's file in UPSTREAM_CA_FILE. A"
    " gateway may want a certificate of ours: UPSTREAM_CLIENT_CERT_FILE.",
    "decode": "The answer is not what the API promises."
    " Check that UPSTREAM_API_URL names the API and not a web page. If it"
    " does, this exporter may be older than the upstream: update it.",
    "too_large": "The answer is longer than that of any network we know of, or the"
    " page that is made of it is longer than PAGE_MAX_BYTES."
    " Check that UPSTREAM_API_URL names the management API. If the page is"
    " too long, look for objects with long names, or raise PAGE_MAX_BYTES. If it is"
    " agent_consumption, a list that NetBird never shortens, leave it out:"
    " REFRESH_INTERVALS=agent_consumption=off.",
    "internal": "The exporter itself has a defect, or too little memory."
    " Look for the traceback in its log, and report it. If it speaks of"
    " memory, give it more.",
}
"""Sentences by reason, in the order of `ports.REASONS`."""


def advice(error: UpstreamError) -> str:
    """What went wrong in plain words, and what to do about it, in one line."""
    return ADVICE[error.reason]

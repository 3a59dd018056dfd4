"""What to do when the upstream cannot be read: a row for every reason there is.

The status page, `/ready` and `--check` tell the same words.
"""

from msgspec import Struct

from api_exporter.ports import Reason, UpstreamError


class Advice(Struct, frozen=True, kw_only=True):
    """Plain words for one reason.

    Attributes:
        meaning: what it is that went wrong, in a sentence.
        remedy: what the operator can look at or change, in one or two.
    """

    reason: Reason
    meaning: str
    remedy: str


ADVICE: tuple[Advice, ...] = (
    Advice(
        reason="auth",
        meaning="The token is wrong, has expired or was deleted.",
        remedy="Check that it has not expired: NetBird's dashboard lists every"
        " service user's access tokens and when they end. Put a valid one into"
        " UPSTREAM_API_TOKEN or UPSTREAM_API_TOKEN_FILE, and make sure that"
        " UPSTREAM_API_URL names the server that issued it.",
    ),
    Advice(
        reason="forbidden",
        meaning="The token is valid, but its user may not read this.",
        remedy="Give the exporter a service user with the role auditor, and check"
        " that the user is neither blocked nor waiting for approval.",
    ),
    Advice(
        reason="rate_limited",
        meaning="The upstream gets more requests than it allows, so all of ours pause"
        " for a while.",
        remedy="Wait some minutes. If it comes back, give the exporter a token that"
        " nothing else uses, lengthen REFRESH_INTERVALS or name fewer COLLECTORS.",
    ),
    Advice(
        reason="not_found",
        meaning="The upstream has nothing at this path.",
        remedy="Check that UPSTREAM_API_URL names the management API, and that a proxy"
        " in front of it passes /api/ on.",
    ),
    Advice(
        reason="redirect",
        meaning="The upstream sends us elsewhere, where the token may not go.",
        remedy="Set UPSTREAM_API_URL to the address where the redirects end; often"
        " https is missing.",
    ),
    Advice(
        reason="http_4xx",
        meaning="The upstream, or a proxy in front of it, does not like the request.",
        remedy="Look for this moment in the logs of both.",
    ),
    Advice(
        reason="http_5xx",
        meaning="The upstream, or a proxy in front of it, is in trouble itself.",
        remedy="Look into the log of the management server. The exporter goes on"
        " trying.",
    ),
    Advice(
        reason="timeout",
        meaning="No complete answer came in time.",
        remedy="Check that the upstream runs, and that no firewall between drops"
        " packets. If it only is slow, lengthen HTTP_TIMEOUT.",
    ),
    Advice(
        reason="proxy",
        meaning="The proxy on the way to the upstream does not let us through.",
        remedy="Check that the proxy runs, that UPSTREAM_PROXY, or HTTPS_PROXY and"
        " HTTP_PROXY, have its address, and look into its log. It must allow CONNECT to"
        " the upstream's host and port. UPSTREAM_PROXY=none goes without it.",
    ),
    Advice(
        reason="proxy_auth",
        meaning="The proxy on the way to the upstream wants a login.",
        remedy="Put user and password into the proxy's address, as in"
        " http://user:password@proxy.example:3128, with %40 for @ and the like. If"
        " they are there, one of them is wrong. Only Basic can be done.",
    ),
    Advice(
        reason="dns",
        meaning="The host name in UPSTREAM_API_URL has no address.",
        remedy="Check how it is spelt, then ask this machine's resolver with"
        " `getent hosts`.",
    ),
    Advice(
        reason="connect",
        meaning="There is no connection, or it broke off.",
        remedy="Check that the upstream runs, that UPSTREAM_API_URL has the right port"
        " and that no firewall is in the way.",
    ),
    Advice(
        reason="tls",
        meaning="The upstream's certificate cannot be trusted, or ours cannot be used,"
        " or it speaks no TLS, or only one older than 1.2.",
        remedy="Check the certificate's name, its end and its issuer. If an authority"
        " of your own has issued it, name that one's file in UPSTREAM_CA_FILE. A"
        " gateway may want a certificate of ours: UPSTREAM_CLIENT_CERT_FILE.",
    ),
    Advice(
        reason="decode",
        meaning="The answer is not what the API promises.",
        remedy="Check that UPSTREAM_API_URL names the API and not a web page. If it"
        " does, this exporter may be older than the upstream: update it.",
    ),
    Advice(
        reason="too_large",
        meaning="The answer is longer than that of any network we know of, or the"
        " page that is made of it is longer than PAGE_MAX_BYTES.",
        remedy="Check that UPSTREAM_API_URL names the management API. If the page is"
        " too long, look for objects with long names, or raise PAGE_MAX_BYTES.",
    ),
    Advice(
        reason="internal",
        meaning="The exporter itself has a defect, or too little memory.",
        remedy="Look for the traceback in its log, and report it. If it speaks of"
        " memory, give it more.",
    ),
)
"""In the order of `ports.REASONS`."""

_BY_REASON = {row.reason: f"{row.meaning} {row.remedy}" for row in ADVICE}


def advice(error: UpstreamError) -> str:
    """What went wrong in plain words, and what to do about it, in one line."""
    return _BY_REASON[error.reason]

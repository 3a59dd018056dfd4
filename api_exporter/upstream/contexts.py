"""TLS contexts: one for each host, kept until this machine trusts other authorities.

Each holds the whole bundle of them: nearly a megabyte, read in ten milliseconds.
"""

import os
import ssl
from collections.abc import Callable

from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import optionsForClientTLS
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

_USUAL = (
    "/etc/ssl/certs",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
)
"""Where distributions keep the authorities; pyOpenSSL's wheels look there, too."""


def trusted() -> tuple[object, ...]:
    """Differs as soon as the files with the authorities do."""
    named = ssl.get_default_verify_paths()  # the environment's come first
    return tuple(map(_state, (named.cafile, named.capath, *_USUAL)))


def _state(path: str | None) -> tuple[int, int, int] | None:
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@implementer(IPolicyForHTTPS)
class KeptContexts:
    """Verifies hosts as browsers do.

    Args:
        state: of the files from which a context is made.
    """

    def __init__(self, state: Callable[[], object] = trusted) -> None:
        self._state = state
        self._made_from: object = None
        self._creators: dict[bytes, IOpenSSLClientConnectionCreator] = {}

    def creatorForNetloc(
        self,
        hostname: bytes,
        port: int,  # noqa: ARG002 - certificates are for hosts
    ) -> IOpenSSLClientConnectionCreator:
        """What makes the connections to a host; its first one makes the context."""
        state = self._state()
        if state != self._made_from:
            self._creators.clear()
            self._made_from = state
        creator = self._creators.get(hostname)
        if creator is None:
            creator = optionsForClientTLS(hostname.decode("ascii"))
            self._creators[hostname] = creator
        return creator

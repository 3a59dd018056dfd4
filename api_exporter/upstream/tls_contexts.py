"""TLS contexts of client connections, and the state of their files."""

import os
import re
from pathlib import Path
from typing import Any

from OpenSSL import SSL
from service_identity import VerificationError
from service_identity.pyopenssl import verify_hostname
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import CertificateOptions, optionsForClientTLS, platformTrust
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

Options = dict[str, Any]
"""Arguments of Twisted's CertificateOptions."""

_OPENSSL_PATHS = tuple(
    f"{folder}/{name}"
    for folder in re.findall('"(.+)"', SSL.OpenSSL_version(SSL.OPENSSL_DIR).decode())
    for name in ("cert.pem", "certs")
)
"""OpenSSL's own paths of certificate authorities, if it reports them."""

_DISTRIBUTION_PATHS = (
    "/etc/ssl/certs",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
)
"""Paths of certificate authorities in Linux distributions, as in pyOpenSSL's wheels."""


def authorities_state() -> tuple[object, ...]:
    """Return a value that changes with the system's certificate authorities."""
    named = map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    return tuple(map(file_state, (*named, *_OPENSSL_PATHS, *_DISTRIBUTION_PATHS)))


def file_state(path: str | Path | None) -> tuple[int, int, int] | None:
    """Return a value that changes with a file or its mode; None if it is missing."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_ctime_ns


def connection_creator(host: str, options: Options) -> IOpenSSLClientConnectionCreator:
    """Return a factory of TLS connections that verify the host as browsers do."""
    others = dict(options)
    trust = others.pop("trustRoot", None) or platformTrust()
    try:
        return optionsForClientTLS(host, trust, extraCertificateOptions=others)
    except UnicodeError:
        return _UnusualHost(host, {**others, "trustRoot": trust})


@implementer(IOpenSSLClientConnectionCreator)
class _UnusualHost:
    """Connects to a name that is not a valid domain, such as one with `_`.

    Twisted rejects such names. OpenSSL verifies the chain, this class the name.
    """

    def __init__(self, host: str, options: Options) -> None:
        self._host = host
        self._context = CertificateOptions(**options).getContext()
        self._context.set_info_callback(self._progressed)

    def clientConnectionForTLS(  # noqa: N802 - Twisted's names
        self,
        tlsProtocol: TLSMemoryBIOProtocol,  # noqa: N803
    ) -> SSL.Connection:
        connection = SSL.Connection(self._context, None)
        connection.set_app_data(tlsProtocol)
        connection.set_tlsext_host_name(self._host.encode("ascii"))
        return connection

    def _progressed(self, connection: SSL.Connection, where: int, _result: int) -> None:
        if not where & SSL.SSL_CB_HANDSHAKE_DONE:
            return
        try:
            verify_hostname(connection, self._host)
        except VerificationError:
            connection.get_app_data().failVerification(Failure())

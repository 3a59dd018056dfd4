"""The TLS policy: certificate authorities, client certificate, server certificate."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from OpenSSL import crypto
from OpenSSL.crypto import X509
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from api_exporter.ports import Now, UpstreamError
from api_exporter.settings.certificate import (
    ClientCertificate,
    ClientCertificateFiles,
    pem_certificates,
)
from api_exporter.upstream.masking import mask_secrets
from api_exporter.upstream.tls_contexts import Options, VerifiedConnections

CONTEXT_SECONDS = 60.0
"""Seconds for which contexts are used. Then their files are read again: 10 ms."""


class UpstreamCertificate(Struct, frozen=True):
    """The server's certificate, with times in seconds since the epoch."""

    issuer: str
    begins_at: float
    expires_at: float

    def __str__(self) -> str:
        end = datetime.fromtimestamp(self.expires_at, UTC)
        return f"expires {end:%Y-%m-%d %H:%M} UTC, issued by {self.issuer}"


def read_certificate(certificate: X509) -> UpstreamCertificate:
    known = certificate.to_cryptography()
    return UpstreamCertificate(
        mask_secrets(known.issuer.rfc4514_string()),
        known.not_valid_before_utc.timestamp(),
        known.not_valid_after_utc.timestamp(),
    )


@implementer(IPolicyForHTTPS)
class TlsPolicy:
    """Makes TLS contexts from files, which are read again after a minute.

    Args:
        authorities: a file of certificate authorities; None for this machine's.
        files: the client certificate and its key; None without one.

    Attributes:
        client_problem: why the client certificate cannot be used, by the last check;
            "" if it can.
    """

    def __init__(
        self, authorities: Path | None, files: ClientCertificateFiles | None, now: Now
    ) -> None:
        self._authorities = authorities
        self._files = files
        self._now = now
        self.client_certificate: ClientCertificate | None = None
        self._creators: dict[bytes, IOpenSSLClientConnectionCreator] = {}
        self._made_at = 0.0
        self.client_problem = ""
        self.reload()

    def creatorForNetloc(
        self,
        hostname: bytes,
        port: int,  # noqa: ARG002 - certificates are for hosts
    ) -> IOpenSSLClientConnectionCreator:
        """Return a host's cached TLS context. Raise UpstreamError without one.

        A context holds all certificate authorities: nearly a megabyte.
        """
        if not 0 <= self._now() - self._made_at < CONTEXT_SECONDS:
            self._creators.clear()
            self._made_at = self._now()
        if hostname not in self._creators:
            # A dot at the end is for DNS: certificates and SNI have none (RFC 6066, 3).
            host = hostname.decode("ascii").removesuffix(".")
            self._creators[hostname] = VerifiedConnections(host, self._options())
        return self._creators[hostname]

    def reload(self) -> str:
        """Read the files again. Return why the client certificate is not valid, or "".

        An expired certificate is sent nevertheless: the gateway decides.
        """
        self._creators.clear()
        return self._read_client_certificate()

    def _read_client_certificate(self) -> str:
        if self._files is None:
            return ""
        self.client_problem = ""
        try:
            self.client_certificate = self._files.read()
        except ValueError as error:
            self.client_problem = str(error)
        certificate = self.client_certificate
        if self.client_problem or certificate is None:
            return self.client_problem
        why = certificate.problem(self._now())
        return f"{self._files.certificate}: {why}" if why else ""

    def _options(self) -> Options:
        options = self._trust_options()
        self._read_client_certificate()
        if self.client_problem:
            problem = f"the client certificate cannot be used: {self.client_problem}"
            raise UpstreamError("tls", problem)
        if (identity := self.client_certificate) is not None:
            leaf, *others = map(X509.from_cryptography, identity.chain)
            options |= {
                "privateKey": crypto.PKey.from_cryptography_key(identity.key),
                "certificate": leaf,
                "extraCertChain": others,
            }
        return options

    def _trust_options(self) -> Options:
        if self._authorities is None:
            return {}
        try:
            pem = pem_certificates(self._authorities)
            authorities = [Certificate.loadPEM(block) for block in pem]
        except (ValueError, crypto.Error) as error:
            why = str(error) if isinstance(error, ValueError) else "unreadable"
            message = f"no certificate authority is usable: {self._authorities}: {why}"
            raise UpstreamError("tls", message) from None
        return {"trustRoot": trustRootFromCertificates(authorities)}


MakePolicy = Callable[[Path | None, ClientCertificateFiles | None, Now], TlsPolicy]
"""A factory of policies. Clients with the same files may share one policy."""

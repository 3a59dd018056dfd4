"""TLS contexts of client connections."""

from typing import Any

from OpenSSL import SSL
from OpenSSL.crypto import X509
from service_identity import CertificateError, VerificationError
from service_identity.hazmat import DNS_ID, IPAddress_ID, verify_service_identity
from service_identity.pyopenssl import extract_patterns
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import CertificateOptions, platformTrust
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from api_exporter.upstream.certificate_problems import chain_problem, name_problem
from api_exporter.upstream.failures import CertificateProblem

Options = dict[str, Any]
"""Arguments of Twisted's CertificateOptions."""


@implementer(IOpenSSLClientConnectionCreator)
class VerifiedConnections:
    """Makes TLS connections that verify the host as browsers do.

    Twisted accepts a certificate without names for any host. And it rejects a host that
    is not a valid domain, such as one with `_`.
    """

    def __init__(self, host: str, options: Options) -> None:
        self._host = host
        try:
            self._id: IPAddress_ID | DNS_ID = IPAddress_ID(host)
        except ValueError:
            self._id = DNS_ID(host)
        options = {"trustRoot": platformTrust(), **options}
        self._context = CertificateOptions(**options).getContext()
        mode = SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT
        self._context.set_verify(mode, self._verify)

    def clientConnectionForTLS(  # noqa: N802 - Twisted's names
        self,
        tlsProtocol: TLSMemoryBIOProtocol,  # noqa: N803
    ) -> SSL.Connection:
        connection = SSL.Connection(self._context, None)
        connection.set_app_data(tlsProtocol)
        if isinstance(self._id, DNS_ID):
            connection.set_tlsext_host_name(self._host.encode("ascii"))
        return connection

    def _verify(
        self,
        connection: SSL.Connection,
        certificate: X509,
        code: int,
        depth: int,
        ok: int,
    ) -> bool:
        """Return whether a certificate is valid; that of depth 0 is the host's."""
        try:
            if not ok:
                problem = chain_problem(certificate.to_cryptography(), code)
            elif depth == 0:
                problem = self._name_problem(certificate)
            else:
                return True
        except Exception:  # noqa: BLE001 - OpenSSL ignores exceptions
            problem = CertificateProblem("the certificate cannot be read", "")
        if problem is not None:
            connection.get_app_data().failVerification(Failure(problem))
        return bool(ok) and problem is None

    def _name_problem(self, certificate: X509) -> CertificateProblem | None:
        patterns = extract_patterns(certificate)
        try:
            verify_service_identity(patterns, [self._id], [])
        except (VerificationError, CertificateError):
            return name_problem(certificate.to_cryptography(), self._host)
        return None

"""The TLS policy: certificate authorities, client certificate, server certificate."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from msgspec import Struct
from OpenSSL import SSL, crypto
from OpenSSL.crypto import X509
from service_identity import CertificateError, VerificationError
from service_identity.hazmat import DNS_ID, IPAddress_ID, verify_service_identity
from service_identity.pyopenssl import extract_patterns
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import (
    Certificate,
    CertificateOptions,
    platformTrust,
    trustRootFromCertificates,
)
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from api_exporter.ports import Now, UpstreamError
from api_exporter.settings.certificate import (
    ClientCertificate,
    ClientCertificateFiles,
    pem_certificates,
)
from api_exporter.upstream.failures import CertificateProblem
from api_exporter.upstream.masking import mask_secrets, one_line

_NOT_YET_VALID, _EXPIRED = 9, 10
_SELF_SIGNED = 18
_UNKNOWN_ISSUER = frozenset({2, 19, 20, 21})
"""Verify errors of OpenSSL: X509_V_ERR_… in its x509_vfy.h."""

_MAX_NAMES = 3


def chain_problem(
    certificate: x509.Certificate, code: int
) -> CertificateProblem | None:
    """Return the problem of an OpenSSL verify error; None if OpenSSL's words fit."""
    if code == _EXPIRED:
        return CertificateProblem(
            f"the certificate expired on {_shown(certificate.not_valid_after_utc)}",
            f"Renew the certificate{_of(certificate)}, unless this machine's clock is"
            " wrong.",
        )
    if code == _NOT_YET_VALID:
        return CertificateProblem(
            "the certificate is not valid before"
            f" {_shown(certificate.not_valid_before_utc)}: check this machine's clock",
            f"If the clock is right, replace the certificate{_of(certificate)}.",
        )
    if code == _SELF_SIGNED:
        return CertificateProblem(
            f"the certificate{_of(certificate)} is refused: its issuer"
            f" {_name(certificate.issuer)} is not trusted, as it is self-signed",
            "If it belongs to your server, set UPSTREAM_CA_FILE to this certificate.",
        )
    if code in _UNKNOWN_ISSUER:
        return CertificateProblem(
            f"the certificate{_of(certificate)} is refused: its issuer"
            f" {_name(certificate.issuer)} is not trusted",
            "If your own certificate authority issued it, set UPSTREAM_CA_FILE. If not,"
            " let the server send its intermediate certificates, too.",
        )
    return None


def name_problem(certificate: x509.Certificate, host: str) -> CertificateProblem:
    names = _hosts(certificate)
    shown = ", ".join(map(_masked, names[:_MAX_NAMES]))
    if len(names) > _MAX_NAMES:
        shown += f" and {len(names) - _MAX_NAMES} more"
    return CertificateProblem(
        f"the certificate is for {shown or 'no host'}, not for {host}",
        "Write a host that the certificate names, or issue a certificate for this one.",
    )


def _hosts(certificate: x509.Certificate) -> list[str]:
    """Return the host names and addresses; the common name does not count."""
    try:
        names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except x509.ExtensionNotFound:
        return []
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def _of(certificate: x509.Certificate) -> str:
    return f" of {name}" if (name := _name(certificate.subject)) else ""


def _name(name: x509.Name) -> str:
    return _masked(name.rfc4514_string())


def _masked(text: str) -> str:
    return mask_secrets(one_line(text))


def _shown(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"


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
        self._context.set_verify(SSL.VERIFY_PEER, self._verify)

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


CONTEXT_SECONDS = 60.0
"""Seconds for which contexts are used. Then their files are read again: 10 ms."""


class UpstreamCertificate(Struct, frozen=True):
    """The server's certificate, with times in seconds since the epoch."""

    issuer: str
    begins_at: float
    expires_at: float

    def __str__(self) -> str:
        end = _shown(datetime.fromtimestamp(self.expires_at, UTC))
        return f"expires {end}, issued by {self.issuer}"


def read_certificate(certificate: X509) -> UpstreamCertificate:
    known = certificate.to_cryptography()
    return UpstreamCertificate(
        _name(known.issuer),
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

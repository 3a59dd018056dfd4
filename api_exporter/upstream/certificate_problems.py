"""Why a certificate is not trusted, with the facts of that certificate. Pure."""

from datetime import datetime

from cryptography import x509

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

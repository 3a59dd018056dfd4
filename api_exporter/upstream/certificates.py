"""Certificates: whom we trust, who we are, and who the upstream says it is."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from OpenSSL import crypto
from OpenSSL.crypto import X509
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from api_exporter.ports import UpstreamError
from api_exporter.settings.certificate import Identity, IdentityFiles, certificates
from api_exporter.upstream.contexts import KeptContexts, Options, state, trusted

_USELESS = "our own certificate cannot be used"


class Shown(Struct, frozen=True):
    """What the upstream's certificate says.

    Attributes:
        issuer: who vouches for it.
        ends: seconds since the epoch.
    """

    issuer: str
    ends: float

    def __str__(self) -> str:
        end = datetime.fromtimestamp(self.ends, UTC)
        return f"until {end:%Y-%m-%d %H:%M} UTC, issued by {self.issuer}"


def shown(certificate: X509) -> Shown:
    """What it says."""
    known = certificate.to_cryptography()
    return Shown(known.issuer.rfc4514_string(), known.not_valid_after_utc.timestamp())


@implementer(IPolicyForHTTPS)
class Trust:
    """Whom we trust and who we are: makes the TLS for connections.

    Args:
        authorities: a file with those that we trust; None for this machine's.
        files: who we are to a gateway, if anybody.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        authorities: Path | None,
        files: IdentityFiles | None,
        now: Callable[[], float],
    ) -> None:
        self._authorities = authorities
        self._files = files
        self._now = now
        self._identity: Identity | None = None
        if files is not None:
            with suppress(ValueError):  # it was good when the settings were read
                self._identity = files.read()
        self._contexts = KeptContexts(self._state, self._options)

    def creatorForNetloc(
        self, hostname: bytes, port: int
    ) -> IOpenSSLClientConnectionCreator:
        """What makes a connection; raises UpstreamError where it cannot be made."""
        creator = self._contexts.creatorForNetloc(hostname, port)
        if why := self.wrong():
            raise UpstreamError("tls", f"{_USELESS}: {why}")
        return creator

    def wrong(self) -> str:
        """Why nobody accepts our certificate now, "" where they may."""
        if self._files is None or self._identity is None:
            return ""
        why = self._identity.wrong(self._now())
        return f"{self._files.certificate}: {why}" if why else ""

    @property
    def own_end(self) -> float | None:
        """When ours ends, in seconds since the epoch; None where we have none."""
        return None if self._identity is None else self._identity.ends

    def _state(self) -> object:
        files = self._files
        ours = () if files is None else (files.certificate, files.key)
        theirs = trusted() if self._authorities is None else state(self._authorities)
        return theirs, *map(state, ours)

    def _options(self) -> Options:
        options = self._trusted()
        if self._files is not None:
            try:
                self._identity = identity = self._files.read()
            except ValueError as error:
                raise UpstreamError("tls", f"{_USELESS}: {error}") from None
            leaf, *others = map(X509.from_cryptography, identity.chain)
            options |= {
                "privateKey": crypto.PKey.from_cryptography_key(identity.key),
                "certificate": leaf,
                "extraCertChain": others,
            }
        return options

    def _trusted(self) -> Options:
        if self._authorities is None:
            return {}
        try:
            pem = certificates(self._authorities)
            authorities = [Certificate.loadPEM(block) for block in pem]
        except (ValueError, crypto.Error) as error:
            why = str(error) if isinstance(error, ValueError) else "it cannot be read"
            words = f"nobody can be trusted: {self._authorities}: {why}"
            raise UpstreamError("tls", words) from None
        return {"trustRoot": trustRootFromCertificates(authorities)}


class Trusts:
    """One for all who trust the same and are the same."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Path | None, IdentityFiles | None], Trust] = {}

    def of(
        self,
        authorities: Path | None,
        files: IdentityFiles | None,
        now: Callable[[], float],
    ) -> Trust:
        """See Trust."""
        key = authorities, files
        if key not in self._kept:
            self._kept[key] = Trust(authorities, files, now)
        return self._kept[key]

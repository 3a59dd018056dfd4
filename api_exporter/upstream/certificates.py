"""Certificates: whom we trust, who we are, and who the upstream says it is."""

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


@implementer(IPolicyForHTTPS)
class Certificates:
    """Makes the TLS to the upstream, and knows what is told of certificates.

    Args:
        authorities: a file with those that we trust; None for this machine's.
        identity: who we are to a gateway, if anybody.
        now: seconds since the epoch.

    Attributes:
        upstream: that of the newest connection; None before the first.
        for_proxy: makes the TLS to a proxy, which need not know who we are.
    """

    def __init__(
        self,
        authorities: Path | None,
        identity: IdentityFiles | None,
        now: Callable[[], float],
    ) -> None:
        self._authorities = authorities
        self._files = identity
        self._now = now
        self._identity = None if identity is None else _read(identity)
        self._contexts = KeptContexts(self._state, self._options)
        self.upstream: Shown | None = None
        self.for_proxy = KeptContexts(self._trusted, self._trust)

    def creatorForNetloc(
        self, hostname: bytes, port: int
    ) -> IOpenSSLClientConnectionCreator:
        """What makes a connection; raises UpstreamError where ours cannot be used."""
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
    def upstream_end(self) -> float | None:
        """Seconds since the epoch."""
        return None if self.upstream is None else self.upstream.ends

    @property
    def own_end(self) -> float | None:
        """Seconds since the epoch; None where we have none."""
        return None if self._identity is None else self._identity.ends

    def seen(self, certificate: X509) -> None:
        """A connection to the upstream has been made, and it showed this."""
        known = certificate.to_cryptography()
        self.upstream = Shown(
            known.issuer.rfc4514_string(), known.not_valid_after_utc.timestamp()
        )

    def _trusted(self) -> object:
        """The state of what says whom we trust."""
        return trusted() if self._authorities is None else state(self._authorities)

    def _state(self) -> object:
        if self._files is None:
            return self._trusted()
        ours = (self._files.certificate, self._files.key)
        return self._trusted(), *map(state, ours)

    def _trust(self) -> Options:
        if self._authorities is None:
            return {}
        try:
            blocks = certificates(self._authorities)
            trusted = [Certificate.loadPEM(block) for block in blocks]
        except (ValueError, crypto.Error) as error:
            why = str(error) if isinstance(error, ValueError) else "it cannot be read"
            words = f"nobody can be trusted: {self._authorities}: {why}"
            raise UpstreamError("tls", words) from None
        return {"trustRoot": trustRootFromCertificates(trusted)}

    def _options(self) -> Options:
        if self._files is None:
            return self._trust()
        self._identity = identity = _read(self._files)
        leaf, *others = map(crypto.X509.from_cryptography, identity.chain)
        return {
            **self._trust(),
            "privateKey": crypto.PKey.from_cryptography_key(identity.key),
            "certificate": leaf,
            "extraCertChain": others,
        }


def _read(files: IdentityFiles) -> Identity:
    try:
        return files.read()
    except ValueError as error:
        raise UpstreamError("tls", f"{_USELESS}: {error}") from None

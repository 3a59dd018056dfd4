"""The TLS context of OpenSSL for `tls_server_config`, and plain HTTP on its port."""

from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import InvalidVersion
from OpenSSL import SSL
from OpenSSL.crypto import X509, X509StoreFlags
from twisted.internet.interfaces import (
    IOpenSSLServerConnectionCreator,
    IProtocolFactory,
)
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer

from api_exporter.access.reloading import ReadFile, unreadable
from api_exporter.access.web_config import (
    CIPHERS,
    CIPHERS_13,
    FILES,
    TlsConfig,
    WebConfig,
)
from api_exporter.serving.channel import host_of
from api_exporter.settings.errors import ConfigurationError, quote_value

NO_RENEGOTIATION = 1 << 30
"""OpenSSL's SSL_OP_NO_RENEGOTIATION, which pyOpenSSL does not name in all versions."""

SET_CURVES_FUNCTION = "SSL_CTX_set1_curves_list"
"""A function of OpenSSL that cryptography exposes from version 47 on."""

CURVES = (b"X25519MLKEM768:X25519:P-256:P-384", b"X25519:P-256:P-384")
"""The first list is for OpenSSL that resists quantum computers."""

DEFAULT_CIPHERS = tuple(CIPHERS.values())[:6]

ALPN = b"http/1.1"
"""The only protocol that the server accepts in ALPN."""

ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Connection: close\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
)
"""The answer to plain HTTP, in the words of Go's servers."""


class ServerConnection(SSL.Connection):
    """A client's connection. Its application data are Twisted's."""

    on_rejected: Callable[[str], None]


@implementer(IOpenSSLServerConnectionCreator)
class ConnectionCreator:
    """A factory of connections; each uses the TLS context that is current at its start.

    Args:
        on_rejected: called with address and reason if a certificate is rejected.
    """

    def __init__(
        self, web: Callable[[], WebConfig], on_rejected: Callable[[str, str], None]
    ) -> None:
        self._web = web
        self._on_rejected = on_rejected

    def serverConnectionForTLS(  # noqa: N802 - Twisted's names
        self,
        tlsProtocol: TLSMemoryBIOProtocol,  # noqa: N803
    ) -> SSL.Connection:
        def on_rejected(why: str) -> None:
            assert tlsProtocol.transport is not None  # it is in a handshake
            self._on_rejected(host_of(tlsProtocol.transport.getPeer()), why)

        context = self._web().context
        assert context is not None  # a reload cannot switch TLS off
        connection = ServerConnection(context, None)
        connection.on_rejected = on_rejected
        return connection


class TlsProtocol(TLSMemoryBIOProtocol):
    """TLS, unless the first byte is a letter: a handshake begins with byte 22."""

    _has_data = False

    def dataReceived(self, bytes: bytes) -> None:  # noqa: A002 - Twisted's names
        if not self._has_data and bytes[:1].isalpha():
            assert self.transport is not None  # it is connected
            self.transport.write(ANSWER)
            self.transport.loseConnection()
            return
        self._has_data = True
        super().dataReceived(bytes)


def encrypted(
    creator: IOpenSSLServerConnectionCreator, factory: IProtocolFactory
) -> IProtocolFactory:
    wrapped = TLSMemoryBIOFactory(creator, False, factory)
    wrapped.protocol = TlsProtocol
    return wrapped


def make_context(tls: TlsConfig, path: Path, read: ReadFile) -> SSL.Context:
    """Return the TLS context for new connections; raise ConfigurationError.

    Args:
        path: the web configuration file; relative names of files start at its folder.
    """
    section = f"{path}: tls_server_config"
    certificate, private_key, authorities = _read_files(tls, path.parent, read, section)
    context = _base_context(tls, section)
    key, problem = "cert_file", "no certificate in PEM format that OpenSSL accepts"
    try:
        chain = x509.load_pem_x509_certificates(certificate)
        context.use_certificate(chain[0])
        for issuer in chain[1:]:
            context.add_extra_chain_cert(issuer)
        key, problem = "key_file", "no private key in PEM format without a password"
        loaded = load_pem_private_key(private_key, None)
        problem = "the key does not belong to the certificate"
        context.use_privatekey(loaded)  # type: ignore[arg-type]  # others: TypeError
        context.check_privatekey()  # else a key of another type is accepted
        key, problem = "client_ca_file", "no certificate in PEM format"
        if tls.requests_certificates:
            _trust(context, authorities if tls.client_ca_file else None)
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidVersion, SSL.Error):
        raise ConfigurationError(f"{section}.{key}: {problem}") from None
    try:
        context.set_alpn_select_callback(
            lambda _, offered: ALPN if ALPN in offered else SSL.NO_OVERLAPPING_PROTOCOLS
        )
        if tls.requests_certificates:
            required = (
                SSL.VERIFY_FAIL_IF_NO_PEER_CERT if tls.requires_certificates else 0
            )
            context.set_verify(SSL.VERIFY_PEER | required, _verifier(tls))
    except MemoryError:  # if memory must not be both writable and executable
        message = "MemoryDenyWriteExecute forbids callbacks in this process"
        raise ConfigurationError(f"{section}: {message}") from None
    return context


def _read_files(
    tls: TlsConfig, folder: Path, read: ReadFile, section: str
) -> list[bytes]:
    contents, errors = [], []
    for key in FILES:
        name = getattr(tls, key) or ""
        try:
            contents.append(read(folder / name) if name else b"")
        except (OSError, ValueError) as error:
            where = "" if name.startswith("/") else f" in {folder}"
            place = f"{section}.{key}: {quote_value(name)}{where}"
            errors.append(unreadable(place, error))
    if errors:
        raise ConfigurationError.joined(errors)
    return contents


def _base_context(tls: TlsConfig, section: str) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_options(SSL.OP_NO_COMPRESSION | NO_RENEGOTIATION | SSL.OP_NO_TICKET)
    # No session is resumed: the trusted authorities may have changed since.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(b"api-exporter")
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    listed = tls.cipher_suites or ()
    older = [CIPHERS[name] for name in listed if name in CIPHERS]
    newer = [name for name in listed if name in CIPHERS_13]
    # Without an older cipher, TLS 1.3 is the only version.
    is_new = tls.min_version == "TLS13" or (newer and not older)
    context.set_min_proto_version(SSL.TLS1_3_VERSION if is_new else SSL.TLS1_2_VERSION)
    try:
        context.set_cipher_list(":".join(older or DEFAULT_CIPHERS).encode())
        if newer:
            context.set_tls13_ciphersuites(":".join(newer).encode())
    except SSL.Error:
        message = "the installed OpenSSL supports none of these"
        raise ConfigurationError(f"{section}.cipher_suites: {message}") from None
    except AttributeError:
        message = "suites of TLS 1.3 need pyOpenSSL 25.2 or newer; leave them out"
        raise ConfigurationError(f"{section}.cipher_suites: {message}") from None
    for curves in CURVES:
        if set_curves(context, curves):
            break
    return context


def set_curves(context: SSL.Context, curves: bytes) -> bool:
    """Set the curves; return whether OpenSSL has them all.

    pyOpenSSL's own `set_tmp_ecdh` takes a single curve, and never X25519. So this
    function calls OpenSSL directly.
    """
    call = getattr(SSL._lib, SET_CURVES_FUNCTION, None)  # type: ignore[attr-defined]
    return call is not None and bool(call(context._context, curves) == 1)


def _trust(context: SSL.Context, authorities: bytes | None) -> None:
    """Trust these authorities; without a file those of this machine, as Go does."""
    if authorities is None:
        context.set_default_verify_paths()
        return
    store = context.get_cert_store()
    assert store is not None
    # An intermediate authority or a client's own certificate suffices, as in Go.
    store.set_flags(X509StoreFlags.PARTIAL_CHAIN)
    for authority in x509.load_pem_x509_certificates(authorities):
        known = X509.from_cryptography(authority)
        store.add_cert(known)
        context.add_client_ca(known)


def _verifier(tls: TlsConfig) -> Callable[[SSL.Connection, X509, int, int, int], bool]:
    """Return the callback for certificates of a chain; the client's own is last."""

    def verify(
        connection: SSL.Connection, certificate: X509, _: int, depth: int, good: int
    ) -> bool:
        if not good:
            why = "the client certificate is not verified"
        else:
            why = "" if depth else _check_names(certificate, tls.client_allowed_sans)
        if why and isinstance(connection, ServerConnection):
            connection.on_rejected(why)
        return not why

    return verify


def _check_names(certificate: X509, allowed: frozenset[str] | None) -> str:
    """Return why a certificate has no allowed name; "" for an allowed one.

    A certificate with damaged names is always rejected, as in Go.
    """
    names: frozenset[str] = frozenset()
    try:
        extension = certificate.to_cryptography().extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
        names = frozenset(str(getattr(name, "value", "")) for name in extension.value)
    except (x509.ExtensionNotFound, x509.UnsupportedGeneralNameType):
        pass  # the latter is a name such as X.400: not damaged
    except Exception:  # noqa: BLE001 - the client made it, and may be hostile
        return "the client certificate cannot be read"
    return (
        ""
        if not allowed or allowed & names
        else "the client certificate has no allowed name"
    )

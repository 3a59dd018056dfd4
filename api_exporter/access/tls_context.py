"""The TLS context of OpenSSL and Twisted for `tls_server_config`."""

from collections.abc import Callable
from contextlib import suppress

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL
from OpenSSL.crypto import X509, X509StoreFlags
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.protocols.tls import TLSMemoryBIOProtocol
from zope.interface import implementer

from api_exporter.access.tls_config import (
    DEFAULT_CURVES,
    NEW_CURVE,
    SECTION,
    VERSIONS,
    TlsConfig,
)
from api_exporter.access.web_config import WebConfig
from api_exporter.settings.errors import ConfigurationError

NO_RENEGOTIATION = 1 << 30
"""OpenSSL's SSL_OP_NO_RENEGOTIATION, which pyOpenSSL does not name in all versions."""

SET_CURVES_FUNCTION = "SSL_CTX_set1_curves_list"
"""A function of OpenSSL that cryptography exposes from version 47 on."""

ALPN = b"http/1.1"
"""The only protocol that the server accepts in ALPN."""

_TLS12 = VERSIONS["TLS12"]


class ServerConnection(SSL.Connection):
    """A client's connection.

    Attributes:
        on_rejected: called with the reason if a client's certificate is rejected.
    """

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
            peer = tlsProtocol.transport.getPeer()
            self._on_rejected(str(getattr(peer, "host", "")), why)

        context = self._web().context
        assert context is not None  # a reload cannot switch TLS off
        connection = ServerConnection(context, None)
        connection.on_rejected = on_rejected
        return connection


def make_context(tls: TlsConfig) -> SSL.Context:
    """Return the TLS context for new connections; raise ConfigurationError."""
    context = _base_context(tls)
    if tls.min_version < _TLS12 and not _supports(_base_context(tls), tls.min_version):
        message = "the installed OpenSSL does not support this version"
        raise _error(tls, "min_version", message)
    try:
        context.set_alpn_select_callback(
            lambda _, offered: ALPN if ALPN in offered else SSL.NO_OVERLAPPING_PROTOCOLS
        )
        if tls.client_auth.requested:
            _trust_authorities(context, tls)
            required = tls.client_auth.required and SSL.VERIFY_FAIL_IF_NO_PEER_CERT
            context.set_verify(SSL.VERIFY_PEER | required, _verifier(tls))
    except MemoryError:  # if memory must not be both writable and executable
        message = "MemoryDenyWriteExecute forbids callbacks in this process"
        raise ConfigurationError(f"{SECTION}: {message}") from None
    return context


def _error(tls: TlsConfig, key: str, message: str) -> ConfigurationError:
    place = tls.places.get(f"{key}_file") or tls.places.get(key) or SECTION
    return ConfigurationError(f"{place}: {message}")


def _base_context(tls: TlsConfig) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_options(SSL.OP_NO_COMPRESSION | NO_RENEGOTIATION | SSL.OP_NO_TICKET)
    # No session is resumed: the trusted authorities may have changed since.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(b"api-exporter")
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    # Without an older cipher, TLS 1.3 is the only version.
    low = VERSIONS["TLS13"] if tls.ciphers is None else tls.min_version
    context.set_min_proto_version(low)
    context.set_max_proto_version(tls.max_version)
    _set_ciphers(context, tls)
    if not set_curves(context, tls.curves or (NEW_CURVE, *DEFAULT_CURVES)):
        if tls.curves:
            message = "the installed OpenSSL does not support all of these curves"
            raise _error(tls, "curve_preferences", message)
        set_curves(context, DEFAULT_CURVES)
    _set_certificate(context, tls)
    return context


def _set_ciphers(context: SSL.Context, tls: TlsConfig) -> None:
    level = "@SECLEVEL=0:" if tls.min_version < _TLS12 else ""
    missing = [name for name in tls.ciphers or () if not _has_cipher(name)]
    if missing:
        message = f"the installed OpenSSL does not support {', '.join(missing)}"
        raise _error(tls, "cipher_suites", message)
    if tls.ciphers is not None:
        context.set_cipher_list(f"{level}{':'.join(tls.ciphers)}".encode())
    if tls.ciphers_13:
        if not hasattr(context, "set_tls13_ciphersuites"):
            message = "suites of TLS 1.3 need pyOpenSSL 25.2 or newer; leave them out"
            raise _error(tls, "cipher_suites", message)
        context.set_tls13_ciphersuites(":".join(tls.ciphers_13).encode())


def _has_cipher(cipher: str) -> bool:
    """Return whether OpenSSL has a cipher. OpenSSL ignores unknown ones in a list."""
    try:
        SSL.Context(SSL.TLS_SERVER_METHOD).set_cipher_list(cipher.encode())
    except SSL.Error:
        return False
    return True


def set_curves(context: SSL.Context, curves: tuple[str, ...]) -> bool:
    """Set the curves; return whether OpenSSL has them all.

    pyOpenSSL's own `set_tmp_ecdh` takes a single curve, and never X25519. So this
    function calls OpenSSL directly.
    """
    call = getattr(SSL._lib, SET_CURVES_FUNCTION, None)  # type: ignore[attr-defined]
    text = ":".join(curves).encode()
    return call is not None and bool(call(context._context, text) == 1)


def _set_certificate(context: SSL.Context, tls: TlsConfig) -> None:
    try:
        chain = x509.load_pem_x509_certificates(tls.certificate)
        context.use_certificate(chain[0])
        for issuer in chain[1:]:
            context.add_extra_chain_cert(issuer)
    except (ValueError, SSL.Error):
        message = "no certificate in PEM format that OpenSSL accepts"
        raise _error(tls, "cert", message) from None
    try:
        key = load_pem_private_key(tls.key, None)
        context.use_privatekey(key)  # type: ignore[arg-type]  # others raise TypeError
        context.check_privatekey()  # else a key of another type is accepted
    except TypeError:
        message = "no private key that OpenSSL accepts without a password"
        raise _error(tls, "key", message) from None
    except (ValueError, UnsupportedAlgorithm):
        raise _error(tls, "key", "no private key in PEM") from None
    except SSL.Error:
        raise _error(tls, "key", "the key does not belong to the certificate") from None


def _trust_authorities(context: SSL.Context, tls: TlsConfig) -> None:
    if tls.client_ca is None:  # as Go does
        context.set_default_verify_paths()
        return
    try:
        authorities = x509.load_pem_x509_certificates(tls.client_ca)
    except ValueError:
        raise _error(tls, "client_ca", "no certificate in PEM") from None
    store = context.get_cert_store()
    assert store is not None
    # An intermediate authority or a client's own certificate suffices, as in Go.
    store.set_flags(X509StoreFlags.PARTIAL_CHAIN)
    for authority in authorities:
        known = X509.from_cryptography(authority)
        store.add_cert(known)
        context.add_client_ca(known)


def _verifier(tls: TlsConfig) -> Callable[[SSL.Connection, X509, int, int, int], bool]:
    """Return the callback for certificates of a chain; the client's own is last."""

    def verify(
        connection: SSL.Connection, certificate: X509, _: int, depth: int, good: int
    ) -> bool:
        if tls.client_auth.verified and not good:
            why = "the client certificate is not verified"
        else:
            why = "" if depth else _check_names(certificate, tls.allowed_sans)
        if why and isinstance(connection, ServerConnection):
            connection.on_rejected(why)
        return not why

    return verify


def _check_names(certificate: X509, allowed: frozenset[str]) -> str:
    """Return why a certificate has no allowed name; "" for an allowed one.

    A certificate with damaged names is always rejected, as in Go.
    """
    try:
        found = subject_names(certificate.to_cryptography())
    except x509.UnsupportedGeneralNameType:  # such as X.400: not damaged
        found = frozenset()
    except Exception:  # noqa: BLE001 - the client made it, and may be hostile
        return "the client certificate cannot be read"
    return (
        ""
        if not allowed or allowed & found
        else "the client certificate has no allowed name"
    )


def subject_names(certificate: x509.Certificate) -> frozenset[str]:
    """Return all subject alternative names as text; raise any error of cryptography."""
    try:
        found = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except x509.ExtensionNotFound:
        return frozenset()
    kinds = (x509.DNSName, x509.RFC822Name, x509.UniformResourceIdentifier)
    texts = [text for kind in kinds for text in found.get_values_for_type(kind)]
    return frozenset([*texts, *map(str, found.get_values_for_type(x509.IPAddress))])


def _supports(context: SSL.Context, version: int) -> bool:
    client_context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    client_context.set_min_proto_version(version)
    client_context.set_max_proto_version(version)
    client_context.set_cipher_list(b"@SECLEVEL=0:ALL")
    client, server = SSL.Connection(client_context), SSL.Connection(context)
    client.set_connect_state()
    server.set_accept_state()
    try:
        for _ in range(4):
            for sender, receiver in ((client, server), (server, client)):
                with suppress(SSL.WantReadError):
                    sender.do_handshake()
                with suppress(SSL.WantReadError):
                    receiver.bio_write(sender.bio_read(1 << 16))
    except SSL.Error:
        return False
    return True

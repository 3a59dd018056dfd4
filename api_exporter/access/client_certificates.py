"""Client certificates: `tls_server_config` of the web configuration file."""

from typing import TYPE_CHECKING

from api_exporter.access.methods import AuthenticationMethod
from api_exporter.access.reloading import Reloader

if TYPE_CHECKING:
    from api_exporter.access.web_config import WebConfig


class ClientCertificates(AuthenticationMethod):
    """Client certificates, which OpenSSL requests before the first byte of HTTP."""

    def __init__(self, web: "Reloader[WebConfig]") -> None:
        self._web = web

    @property
    def is_required(self) -> bool:
        tls = self._web.value.tls
        return tls is not None and tls.client_auth.required

    @property
    def in_handshake(self) -> bool:
        return True

    def describe(self) -> str:
        tls = self._web.value.tls
        return "" if tls is None else f"TLS, {tls.client_auth.description}"

"""`/status.json`: the report for programs, and its schema."""

import msgspec
from twisted.web.server import Request

from api_exporter.refresh.network import AccountNetwork
from api_exporter.report.document import Document, document_of
from api_exporter.serving.page import TextPage, visible_accounts
from api_exporter.serving.visibility import ALL_ACCOUNTS
from api_exporter.web.account_page import AccountPage, Networks
from api_exporter.web.context import SiteContext, TTLCache

STATUS_PATH = "status.json"
SCHEMA_PATH = "status.schema.json"


class StatusJson(AccountPage):
    """The report on the accounts that the client may see."""

    def __init__(self, networks: Networks, context: SiteContext) -> None:
        super().__init__(networks, context)
        self._cache = TTLCache[bytes](context.clock.seconds)

    def one(self, _request: Request, network: AccountNetwork) -> bytes:
        return self._cache.get(network, lambda: self._document(network))

    def many(self, request: Request) -> bytes:
        """Return the document, cached for a second for clients that may see all."""
        visible, every = visible_accounts(request), self.networks
        if visible is ALL_ACCOUNTS:
            return self._cache.get(None, lambda: self._document(*every.values()))
        return self._document(*(one for name, one in every.items() if name in visible))

    def _document(self, *networks: AccountNetwork) -> bytes:
        document = document_of(
            networks,
            runbooks=self.context.runbooks,
            version=self.context.build.version,
            now=self.now(),
        )
        return msgspec.json.encode(document) + b"\n"


class Schema(TextPage):
    """The JSON Schema of the document."""

    media_type = b"application/schema+json"

    def text(self, _request: Request) -> str:
        return schema()


def schema() -> str:
    made = msgspec.json.schema(Document)
    return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"

"""`/status.json`: the report for programs, and its schema."""

import msgspec
from twisted.web.server import Request

from api_exporter.refresh.network import AccountNetwork
from api_exporter.report.document import Document
from api_exporter.serving.page import TextPage
from api_exporter.web.account_page import AccountPage

STATUS_PATH = "status.json"
SCHEMA_PATH = "status.schema.json"


class StatusJson(AccountPage):
    """The report on the accounts that the client may see."""

    def one(self, _request: Request, network: AccountNetwork) -> bytes:
        return _encoded(self.context.document([network]))

    def many(self, request: Request) -> bytes:
        return _encoded(self.visible_document(request))


def _encoded(document: Document) -> bytes:
    return msgspec.json.encode(document) + b"\n"


class Schema(TextPage):
    """The JSON Schema of the document."""

    media_type = b"application/schema+json"

    def text(self, _request: Request) -> str:
        return schema()


def schema() -> str:
    made = msgspec.json.schema(Document)
    return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"

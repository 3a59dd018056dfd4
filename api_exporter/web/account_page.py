"""A page of one account, or of all accounts if the request names none."""

from collections.abc import Mapping
from functools import partial

from twisted.web.server import Request

from api_exporter.ports import ALL_ACCOUNTS
from api_exporter.refresh.network import AccountNetwork
from api_exporter.report.document import Document
from api_exporter.serving.page import (
    ACCOUNT_NOT_FOUND,
    Answer,
    ReadOnlyPage,
    error_line,
    visible_accounts,
)
from api_exporter.web.context import SiteContext

Networks = Mapping[str, AccountNetwork]
"""By the account's name, "" for the only account. A reload changes the mapping."""


class AccountPage(ReadOnlyPage):
    """A page about accounts.

    Attributes:
        usage: the parameters of a valid request, after the account.
    """

    media_type = b"application/json"
    usage = ""

    def __init__(self, networks: Networks, context: SiteContext) -> None:
        super().__init__()
        self.networks, self.context, self.now = networks, context, context.now

    def one(self, request: Request, network: AccountNetwork) -> Answer:
        """Return the page of an account. It sets the status if that is not 200."""
        raise NotImplementedError

    def many(self, request: Request) -> Answer:
        """Return the page for requests that name none of several accounts."""
        path = request.path.decode("ascii", "replace")
        line = f"account is missing: request {path}?account=NAME{self.usage}"
        return error_line(request, 400, line)

    def visible_document(self, request: Request) -> Document:
        visible, every = visible_accounts(request), self.networks
        if visible is ALL_ACCOUNTS:
            make = partial(self.context.document, every.values())
            return self.context.documents.get(None, make)
        return self.context.document(
            one for name, one in every.items() if name in visible
        )

    def page(self, request: Request) -> Answer:
        names: list[bytes] | None = request.args.get(b"account")
        if "" in self.networks:
            if names is None:
                return self.one(request, self.networks[""])
            line = "account is not allowed: this exporter has a single account"
            return error_line(request, 400, line)
        if names is None:
            return self.many(request)
        name = names[0].decode("utf-8", "replace")
        network = self.networks.get(name) if len(names) == 1 else None
        if network is None:
            return error_line(request, 404, ACCOUNT_NOT_FOUND)
        return self.one(request, network)

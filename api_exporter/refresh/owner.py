"""The owner of a token: is a new token of the same user and account?"""

from msgspec import Struct

from api_exporter.netbird.inventory import Inventory, ids_of
from api_exporter.netbird.resource_state import NotRead
from api_exporter.netbird.resources import ACCOUNT_LIST, CURRENT_USER
from api_exporter.refresh.states import States


class Owner(Struct, frozen=True):
    """The owner of a token.

    Attributes:
        users: the id of the user. None if it is unknown, and empty for a service user,
            which may not read it.
        accounts: the ids of the accounts that the user lists.
    """

    users: frozenset[str] | None
    accounts: frozenset[str]

    def is_other_user(self, before: "Owner") -> bool:
        return None not in {self.users, before.users} and self.users != before.users

    def has_same_account(self, before: "Owner") -> bool:
        return not self.accounts.isdisjoint(before.accounts)


def owner_of(inventory: Inventory, states: States) -> Owner:
    users: frozenset[str] | None = ids_of(inventory.current_user) or None
    user, accounts = states.every.get(CURRENT_USER), states.every.get(ACCOUNT_LIST)
    if user is not None and user.not_read is NotRead.REFUSED:
        users = frozenset()
    # Another user may have listed the accounts that this one may not.
    is_listed = accounts is not None and accounts.not_read is None
    return Owner(users, inventory.account_ids if is_listed else frozenset())

"""The states of an account's resources. Events change them, and may have log lines."""

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird.inventory import Inventory, ids_of
from api_exporter.netbird.resource_state import NotRead, ResourceState
from api_exporter.netbird.resources import ACCOUNT_LIST, CURRENT_USER, PEERS
from api_exporter.ports import REASONS, Attempt
from api_exporter.refresh.transitions import Event, Failed, LogLine, next_state
from api_exporter.subjects.table import RESOURCE_BY_NAME


class States(dict[str, ResourceState]):
    """The states of all resources that are not dormant.

    Args:
        log: called with the name of a resource and each line about it.

    Attributes:
        every: those of dormant resources, too, in the order of the first refreshes.
        intervals: seconds between two refreshes, by the settings.
        reasons: the number of failed refreshes by reason.
        on_up_changed: called when `netbird_api_up` has changed.
    """

    def __init__(
        self, intervals: Mapping[str, float], log: Callable[[str, LogLine], object]
    ) -> None:
        self.intervals = intervals
        self.every = {n: ResourceState(interval=s) for n, s in intervals.items()}
        super().__init__(self.every)
        self.reasons: dict[str, int] = dict.fromkeys(REASONS, 0)
        self.on_up_changed: Callable[[], object] = lambda: None
        self._log = log

    def change(self, name: str, **changes: object) -> None:
        """Replace attributes of a state that are no event."""
        self.put(name, replace(self.every[name], **changes))

    def record(self, name: str, event: Event) -> None:
        """Change a state, and log what that has to say."""
        before = self.every[name]
        after, lines = next_state(before, event)
        self.put(name, after)
        if isinstance(event, Failed) and event.seconds is not None:
            self.reasons[event.error.reason] += 1
        if name == PEERS and after.up is not before.up:
            self.on_up_changed()
        for line in lines:
            self._log(name, line)

    def record_attempt(self, attempt: Attempt) -> None:
        """Record a failed attempt for the peers: they count as failing immediately."""
        if attempt.path == RESOURCE_BY_NAME[PEERS].path and attempt.error is not None:
            at = attempt.started + attempt.seconds
            self.record(PEERS, Failed(attempt.error, None, at))

    def put(self, name: str, state: ResourceState) -> None:
        self.every[name] = state
        is_known = state.not_read is not NotRead.DORMANT
        if is_known is not (name in self):
            self.clear()
            self.update(
                (name, one)
                for name, one in self.every.items()
                if one.not_read is not NotRead.DORMANT
            )
        elif is_known:
            self[name] = state


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

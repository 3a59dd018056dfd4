"""The newest records of each resource."""

from collections.abc import Container, Iterable, Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.exposition.tally import chunks
from api_exporter.netbird import records
from api_exporter.netbird.facts.members import Steps, member_ids, named


class Inventory(Struct, frozen=True, kw_only=True, dict=True):
    """What may be told of the network. None: not known, or only from too long ago.

    Attributes:
        personal: the kinds of personal data that may be told.
        changes: something new for each resource whenever its records are replaced.
        detail: groups, by name or id, whose peers may have series of their own; None:
            all peers may.
    """

    personal: frozenset[str] = frozenset()
    detail: frozenset[str] | None = None
    peers: tuple[records.Peer, ...] | None = None
    accounts: tuple[records.Account, ...] | None = None
    groups: tuple[records.Group, ...] | None = None
    setup_keys: tuple[records.SetupKey, ...] | None = None
    networks: tuple[records.Network, ...] | None = None
    network_routers: tuple[records.NetworkRouter, ...] | None = None
    network_resources: tuple[records.NetworkResource, ...] | None = None
    routes: tuple[records.Route, ...] | None = None
    users: tuple[records.User, ...] | None = None
    access_tokens: tuple[records.AccessToken, ...] | None = None
    policies: tuple[records.Policy, ...] | None = None
    posture_checks: tuple[records.PostureCheck, ...] | None = None
    nameservers: tuple[records.NameserverGroup, ...] | None = None
    dns_settings: tuple[records.DnsSettings, ...] | None = None
    dns_zones: tuple[records.DnsZone, ...] | None = None
    proxy_services: tuple[records.ProxyService, ...] | None = None
    proxy_domains: tuple[records.ProxyDomain, ...] | None = None
    proxy_clusters: tuple[records.ProxyCluster, ...] | None = None
    proxy_tokens: tuple[records.ProxyToken, ...] | None = None
    instance_version: tuple[records.InstanceVersion, ...] | None = None
    events: tuple[records.AuditEvent, ...] | None = None
    changes: Mapping[str, object] = {}

    def with_(self, resource: str, records: object) -> "Inventory":
        """The same with a resource's records replaced; None forgets them.

        Another current user has other access tokens: those that were known go.
        """
        changes = {**self.changes, resource: object()}
        after = replace(self, **{resource: records}, changes=changes)
        if resource == "users" and after.current_user != self.current_user:
            return replace(after, access_tokens=None)
        return after

    def edition(self, resources: Iterable[str]) -> tuple[object, ...]:
        """The same until one of these changes. To hold it keeps no records alive."""
        return tuple(self.changes.get(resource) for resource in resources)

    def detailed(self) -> Steps[Iterable[records.Peer]]:
        """The peers that may have series of their own."""
        ids = yield from self.detailed_ids()
        peers = self.peers or ()
        if ids is None:
            return peers
        found: list[records.Peer] = []
        for some in chunks(peers):
            found += [p for p in some if p.id in ids]
            yield
        return found

    def detailed_ids(self) -> Steps[Container[str] | None]:
        """The ids of these peers; None for all, nobody's while groups are unknown."""
        if self.detail is None:
            return None
        return (yield from member_ids(named(self.groups, self.detail)))

    @property
    def missing_groups(self) -> tuple[str, ...]:
        """What `detail` names and is no group, as far as the groups are known."""
        if self.detail is None or self.groups is None:
            return ()
        there = {name for group in self.groups for name in (group.id, group.name)}
        return tuple(sorted(self.detail - there))

    @cached_property  # asked for after every round
    def current_user(self) -> str | None:
        """The id of the user to whom the exporter's own token belongs.

        Of several the lowest one: the upstream has another order at each reading.
        """
        return min((u.id for u in self.users or () if u.is_current), default=None)

    @property
    def partial(self) -> bool:
        """Whether the list of peers may not hold all of them.

        Fact: a human with the role `user` gets 200 and only their own peers.
        """
        return any(
            user.is_current and not user.is_service_user and user.role == "user"
            for user in self.users or ()
        )

"""Targets: one for each peer and port, with all known properties as labels.

Prometheus refuses the whole list because of one value that is no string, or one unknown
key. So the types here allow only strings and known keys.
"""

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.exposition.pages import Payload
from api_exporter.exposition.text import boolean
from api_exporter.netbird.facts.members import member_ids, named
from api_exporter.netbird.facts.personal import personal_labels
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Peer
from api_exporter.subjects.peers import PEER_FIELDS
from api_exporter.web.discovery.membership import (
    NO_GROUPS,
    GroupList,
    label_list,
    line,
    membership,
)
from api_exporter.web.discovery.query import Query
from api_exporter.web.json_list import JsonList

REQUIRED = ("peers", "groups")
"""The resources without which there is no response."""

MAX_TARGETS = 300_000
"""The maximum number of targets: about as many as have MAX_RESPONSE_BYTES."""


def _meta(name: str) -> str:
    return f"__meta_netbird_{name}"


class TargetLabels(Struct, frozen=True, gc=False, rename=_meta, omit_defaults=True):
    """The labels of a peer. Empty ones are left out, like unknown ones.

    No label is an instant: Prometheus rebuilds a target whenever a label changes.
    """

    account: str = ""
    account_id: str = ""
    peer_id: str = ""
    peer: str = ""
    dns_name: str = ""
    extra_dns_names: str = ""
    ip: str = ""
    ipv6: str = ""
    os: str = ""
    kernel_version: str = ""
    version: str = ""
    ui_version: str = ""
    connected: str = ""
    login_expired: str = ""
    approval_required: str = ""
    ssh_enabled: str = ""
    ephemeral: str = ""
    user_id: str = ""
    country: str = ""
    groups: str = ""
    group_ids: str = ""
    hostname: str = ""
    city: str = ""
    connection_ip: str = ""
    serial_number: str = ""


def has_too_many_targets(inventory: Inventory, query: Query) -> bool:
    """Return whether a response would be too long, before it is computed.

    The number of peers is estimated: all members of the chosen groups, but no more than
    there are peers.
    """
    peer_count = len(inventory.peers or ())
    if query.groups:
        chosen = named(inventory.groups, query.groups)
        peer_count = min(peer_count, sum(len(group.peers or ()) for group in chosen))
    return peer_count * len(query.ports) > MAX_TARGETS


class _Entry(Struct, frozen=True, gc=False):
    targets: tuple[str]
    labels: TargetLabels


def target_list(inventory: Inventory, query: Query, account: str = "") -> Payload:
    """Return the JSON list; raise ResponseTooLong.

    Args:
        account: its name in the configuration, "" if there is only one.
    """
    peers, groups = inventory.peers, inventory.groups
    assert peers is not None
    assert groups is not None
    chosen: set[str] | None = None
    if query.groups:
        chosen = member_ids(named(groups, query.groups))
    group_lists = membership(groups, chosen)
    account_id = inventory.accounts[0].id if inventory.accounts else ""
    targets = JsonList()
    for peer in peers:
        host = _host(peer, query.address_kind)
        if host and (chosen is None or peer.id in chosen):
            labels = _labels(
                peer,
                group_lists.get(peer.id, NO_GROUPS),
                account=account,
                account_id=account_id,
                kinds=inventory.personal,
            )
            for port in query.ports:
                targets.add(_Entry((f"{host}:{port}",), labels))
    return targets.end()


def _host(peer: Peer, kind: str) -> str:
    """Return the address, in brackets for IPv6; "" if the peer has none."""
    host = {"ip": peer.ip, "ipv6": peer.ipv6, "dns": peer.dns_label}[kind]
    return f"[{host}]" if ":" in host else host


def _labels(
    peer: Peer,
    groups: GroupList,
    *,
    account: str,
    account_id: str,
    kinds: frozenset[str],
) -> TargetLabels:
    labels = TargetLabels(
        account=account,
        account_id=account_id,
        peer_id=peer.id,
        peer=line(peer.name),
        dns_name=peer.dns_label,
        extra_dns_names=label_list(peer.extra_dns_labels or ()),
        ip=peer.ip,
        ipv6=peer.ipv6,
        os=line(peer.os),
        kernel_version=line(peer.kernel_version),
        version=line(peer.version),
        ui_version=line(peer.ui_version),
        connected=boolean(peer.connected),
        login_expired=boolean(peer.login_expired),
        approval_required=boolean(peer.approval_required),
        ssh_enabled=boolean(peer.ssh_enabled),
        ephemeral=boolean(peer.ephemeral),
        user_id=peer.user_id,
        country=peer.country_code,
        groups=groups.names,
        group_ids=groups.ids,
    )
    if kinds:
        personal = personal_labels(PEER_FIELDS, peer, kinds)
        lines = {k: line(personal[k]) for k in ("hostname", "city") if k in personal}
        return replace(labels, **personal | lines)
    return labels

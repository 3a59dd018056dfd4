"""All machines: `/api/peers`, and the members of `/api/groups`."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from api_exporter.demo.groups import ALL, GROUPS, RUNNERS, Group
from api_exporter.demo.moment import Moment
from api_exporter.demo.peers import Peer, Runner, machine
from api_exporter.demo.wire import HOLE, array, encode


class Fleet:
    """The machines of a network of that size.

    Ephemeral ones come and go, so that a few per cent fewer are listed at any instant.
    """

    def __init__(self, machines: int, seed: int) -> None:
        self._machines = machines
        self._peers: list[Peer] = []
        self._runners: list[Runner] = []
        self._members: dict[str, list[bytes]] = {group.id: [] for group in GROUPS}
        for number in range(machines):
            self._add(machine(number, seed))
        self._sizes = {id_: len(members) for id_, members in self._members.items()}
        self._combinations = {peer.groups for peer in self._peers}

    def _add(self, member: Peer | Runner) -> None:
        if isinstance(member, Runner):
            self._runners.append(member)
            return
        self._peers.append(member)
        for group in member.groups:
            self._members[group].append(member.member)

    def moment(self, at: float) -> Moment:
        """What the rest of the network needs to know of the fleet at that instant."""
        running = sum(runner.exists(at) for runner in self._runners)
        members = Counter(self._sizes)
        members.update({ALL.id: running, RUNNERS.id: running})
        return Moment(at=at, machines=self._machines, members=members)

    def peers(self, moment: Moment) -> Iterator[bytes]:
        """The body of the peers, in pieces."""
        in_short = {group.id: moment.in_short(group) for group in GROUPS}
        groups = {
            ids: encode([in_short[id_] for id_ in ids] or None)
            for ids in ((ALL.id, RUNNERS.id), *self._combinations)
        }
        at = moment.at
        return array(
            peer.record(at, groups[peer.groups])
            for peer in chain(self._peers, self._running(at))
        )

    def groups(self, moment: Moment) -> Iterator[bytes]:
        """The body of the groups, in pieces."""
        opening = b"["
        for group in GROUPS:
            resources = [{"id": id_, "type": type_} for id_, type_ in group.resources]
            head, tail = encode(
                {
                    **moment.in_short(group),
                    "issued": group.issued,
                    "peers": HOLE,
                    "resources": resources or None,
                }
            ).split(b"\0")
            yield opening + head
            if moment.members[group.id]:
                yield from array(self._in(group, moment.at))
            else:
                yield b"null"
            yield tail
            opening = b","
        yield b"]"

    def _in(self, group: Group, at: float) -> Iterator[bytes]:
        yield from self._members[group.id]
        if group in {ALL, RUNNERS}:
            for peer in self._running(at):
                yield peer.member

    def _running(self, at: float) -> Iterator[Peer]:
        return (runner.peer(at) for runner in self._runners if runner.exists(at))

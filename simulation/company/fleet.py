"""All machines: `/api/peers`, and the members of `/api/groups`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from api_exporter.demo.go_json import array, encode
from simulation.company.company import ALL, RUNNERS
from simulation.company.machines import Machine, Runner, machine
from simulation.company.resource import HOLE, Moment, load

_SUMMARY_FIELDS = ("id", "name", "peers_count", "resources_count")
"""Fields of a group inside of other records."""


class SimulatedFleet:
    """The machines of a network. Ephemeral machines come and go. So a few per cent
    fewer are listed at any time.
    """

    def __init__(self, machines: int, seed: int) -> None:
        self._machines = machines
        self._peers: list[Machine] = []
        self._runners: list[Runner] = []
        self._members: dict[str, list[bytes]] = {
            group["id"]: [] for group in load("groups").records
        }
        for number in range(machines):
            member = machine(number, seed)
            if isinstance(member, Runner):
                self._runners.append(member)
                continue
            self._peers.append(member)
            for group in member.groups:
                self._members[group].append(member.member)
        self._sizes = {id_: len(members) for id_, members in self._members.items()}
        self._combinations = {peer.groups for peer in self._peers}

    def moment(self, at: float) -> Moment:
        """Return the values that other resources need of the fleet at a time."""
        running = sum(runner.exists(at) for runner in self._runners)
        members = Counter(self._sizes)
        members.update({ALL: running, RUNNERS: running})
        return Moment(at=at, machines=self._machines, members=members)

    def peers(self, moment: Moment) -> Iterator[bytes]:
        summaries = {
            group["id"]: {key: group[key] for key in _SUMMARY_FIELDS}
            for group in moment.load("groups").records
        }
        groups = {
            ids: encode([summaries[id_] for id_ in ids] or None)
            for ids in ((ALL, RUNNERS), *self._combinations)
        }
        return array(
            peer.record(moment.at, groups[peer.groups])
            for peer in chain(self._peers, self._running(moment.at))
        )

    def groups(self, moment: Moment) -> Iterator[bytes]:
        opening = b"["
        for group in moment.load("groups").records:
            head, tail = encode(group | {"peers": HOLE}).split(b"\0")
            yield opening + head
            members: Iterable[bytes] = self._members[group["id"]]
            if group["id"] in {ALL, RUNNERS}:
                running = (peer.member for peer in self._running(moment.at))
                members = chain(members, running)
            yield from array(members) if group["peers_count"] else (b"null",)
            yield tail
            opening = b","
        yield b"]"

    def _running(self, at: float) -> Iterator[Machine]:
        return (runner.peer(at) for runner in self._runners if runner.exists(at))

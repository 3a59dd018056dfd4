"""The firewall rules, loaded in network namespaces and tested by real connections."""

import ipaddress
import os
import sys
from collections.abc import Collection
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.deploy.programs import DEPLOY, new_folder, run
from tests.integration.programs import program, start, until

NFT = DEPLOY / "nftables/api-exporter.nft"
IPTABLES = DEPLOY / "iptables/api-exporter.sh"

PORT, OTHER = 8080, 8081

PRIVATE = ("10.255.1.2", "172.16.0.2", "172.31.255.2", "192.168.7.2")
OVERLAY = ("100.64.0.2", "100.127.255.2", "fd00::2")
OUTSIDE = (
    *("100.63.255.2", "100.128.0.2", "9.255.255.2", "172.15.255.2", "172.32.0.2"),
    *("192.169.0.2", "203.0.113.2"),
)
IPV6 = ("2001:db8::2", "fd00::2")
HOSTS = tuple(dict.fromkeys((*PRIVATE, *OVERLAY, *OUTSIDE, *IPV6)))

SERVER = f"""
import select, socket
open = [socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        for port in ({PORT}, {OTHER})]
print("listening", flush=True)
while True:
    for listening in select.select(open, [], [])[0]:
        listening.accept()[0].close()
"""

CLIENT = """
import ctypes, os, select, socket, sys, time
_, port, *tries = sys.argv
enter = ctypes.CDLL(None, use_errno=True).setns
found, waiting = ["dropped"] * len(tries), {}
for number, (name, address) in enumerate(one.split(",") for one in tries):
    with open(f"/run/netns/{name}") as namespace:
        if enter(namespace.fileno(), 0):
            sys.exit(f"{name}: {os.strerror(ctypes.get_errno())}")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    client = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    client.connect_ex((address, int(port)))
    waiting[client] = number
end = time.monotonic() + 1
while waiting:
    ready = select.select([], waiting, [], max(0, end - time.monotonic()))[1]
    if not ready:
        break
    for client in ready:
        error = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        found[waiting.pop(client)] = os.strerror(error) if error else "accepted"
print("\\n".join(found))
"""
"""A program for all namespaces, because one in each would take minutes to start."""


def beside(host: str) -> str:
    """Return the server's address on the link to a host."""
    return str(ipaddress.ip_address(host) + 1)


class FirewallTests(SynchronousTestCase):
    """A server, and one host to each link, all in namespaces of their own."""

    def setUp(self) -> None:
        program("ip")
        self.server = self.namespace("server")
        self.hosts = {
            host: self.namespace(str(number)) for number, host in enumerate(HOSTS)
        }
        for number, (host, name) in enumerate(self.hosts.items()):
            self.link(host, name, f"host{number}")
        command = ["ip", "netns", "exec", self.server, sys.executable, "-c", SERVER]
        serving = start(self, command, new_folder(self))
        until(lambda: "listening" in serving.said(), "the server")
        self.assertReached(HOSTS, HOSTS)

    def namespace(self, name: str) -> str:
        name = f"api-exporter-{os.getpid()}-{name}"
        try:
            run("ip", "netns", "add", name)
            self.addCleanup(run, "ip", "netns", "del", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        except AssertionError:
            raise SkipTest("missing privilege: network namespaces") from None
        return name

    def link(self, host: str, name: str, device: str) -> None:
        """Join a host to the server."""
        peer = ("peer", "name", device, "netns", self.server)
        run("ip", "link", "add", "eth0", "netns", name, "type", "veth", *peer)
        nodad = ("nodad",) if ":" in host else ()
        size = 64 if ":" in host else 24
        for namespace, end, address in (
            (name, "eth0", host),
            (self.server, device, beside(host)),
        ):
            add = ("address", "add", f"{address}/{size}", "dev", end, *nodad)
            run("ip", "-n", namespace, *add)
            run("ip", "-n", namespace, "link", "set", end, "up")

    def inside(self, *commands: str) -> str:
        """Run programs in the server's namespace."""
        inside = ("ip", "netns", "exec", self.server)
        return "".join(run(*inside, *command.split()) for command in commands)

    def reached(self, port: int) -> set[str]:
        """Return the addresses from which the server's port is reached."""
        tries = {host: (name, beside(host)) for host, name in self.hosts.items()}
        for own in ("127.0.0.1", "::1", beside(PRIVATE[0]), beside(OUTSIDE[0])):
            tries[f"itself at {own}"] = (self.server, own)
        asked = (f"{name},{address}" for name, address in tries.values())
        told = run(sys.executable, "-I", "-c", CLIENT, str(port), *asked).splitlines()
        found = dict(zip(tries, told, strict=True))
        self.assertLessEqual(set(found.values()), {"accepted", "dropped"}, found)
        itself = {who for who in found if who not in HOSTS}
        self.assertEqual({"accepted"}, {found[who] for who in itself})
        return {host for host in HOSTS if found[host] == "accepted"}

    def assertReached(self, port: Collection[str], other: Collection[str]) -> None:  # noqa: N802 - as the others
        """Check from which hosts the exporter's port and another one are reached."""
        self.assertEqual(set(port), self.reached(PORT))
        self.assertEqual(set(other), self.reached(OTHER))

    def tried(self, load: str, file: Path, word: str, remove: str, lists: str) -> None:
        """Only private networks and the machine itself reach the port. Loading twice is
        harmless, and one command removes the rules. One word admits NetBird's own
        range and private IPv6 addresses; the same word excludes them again.
        """
        before = self.inside(*lists.split(", "))
        text = file.read_text()
        self.assertEqual(1, text.count(f"{word}closed\n"))
        opened = Path(self.mktemp()).absolute()
        opened.write_text(text.replace(f"{word}closed\n", f"{word}open\n"))
        opened.chmod(0o755)
        self.inside(f"{load} {opened}")
        self.assertReached({*PRIVATE, *OVERLAY}, HOSTS)
        listed = set()
        for _ in range(2):
            self.inside(f"{load} {file}")
            self.assertReached(PRIVATE, HOSTS)
            listed.add(self.inside(*lists.split(", ")))
        self.assertEqual(1, len(listed))
        self.inside(remove)
        self.assertEqual(before, self.inside(*lists.split(", ")))
        self.assertReached(HOSTS, HOSTS)

    def test_nft(self) -> None:
        """The rules of nft change no other table."""
        program("nft")
        self.inside("nft add table inet somebody_else")
        remove = "nft delete table inet api_exporter"
        word = "define api_exporter_overlay = "
        self.tried("nft -f", NFT, word, remove, "nft list ruleset")

    def test_iptables(self) -> None:
        """The rules of iptables change no other rule. A refusal of all may follow."""
        program("iptables")
        self.inside("iptables -A INPUT -p tcp --dport 9 -j DROP")
        remove = f"{IPTABLES} remove"
        self.tried("", IPTABLES, "overlay=", remove, "iptables -S, ip6tables -S")
        for spoil in ("-I", "-D"):  # the jump is there twice, or not at all
            before = self.inside("iptables -S", "ip6tables -S")
            jump = f"iptables {spoil} INPUT -p tcp -j API-EXPORTER"
            self.inside(str(IPTABLES), jump, remove)
            self.assertEqual(before, self.inside("iptables -S", "ip6tables -S"))
        powerless = ("setpriv", "--bounding-set=-net_admin", IPTABLES, "remove")
        said = run("ip", "netns", "exec", self.server, *powerless, status=4)
        self.assertIn("Permission denied", said)
        self.inside(remove, str(IPTABLES), "iptables -A INPUT ! -i lo -j DROP")
        self.assertReached(PRIVATE, IPV6)


class OnePlaceTests(SynchronousTestCase):
    def test_once(self) -> None:
        """Port and ranges stand once in each file, above the first rule."""
        for file in (NFT, IPTABLES):
            text = file.read_text()
            for word in (
                *("8080", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
                *("100.64.0.0/10", "fc00::/7"),
            ):
                self.assertEqual(1, text.count(word), f"{word} in {file.name}")
                self.assertLess(text.index(word), text.index("{\n"), file.name)

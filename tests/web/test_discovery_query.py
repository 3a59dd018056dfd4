from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http import parse_qs

from api_exporter.web.discovery import QueryError, parse_query
from api_exporter.web.peer_table import Query


def asked(text: str, others: tuple[str, ...] = ()) -> Query:
    """Return the arguments as Twisted parses them."""
    return parse_query(parse_qs(text.encode(), keep_blank_values=True), others)


class QueryTests(SynchronousTestCase):
    def refusal(self, text: str, others: tuple[str, ...] = ()) -> str:
        with self.assertRaises(QueryError) as caught:
            asked(text, others)
        return str(caught.exception)

    def test_all(self) -> None:
        """A port alone means all peers by IPv4; ports and groups may repeat."""
        self.assertEqual(Query((9100,), frozenset(), "ip"), asked("port=9100"))
        self.assertEqual(
            Query((1, 9100, 65535), frozenset({"R&D <core>", "東京", "a,b"}), "dns"),
            asked(
                "port=65535&group=R%26D+%3Ccore%3E&port=1&address=dns&port=9100"
                "&group=%E6%9D%B1%E4%BA%AC&group=a,b"
            ),
        )

    def test_ports(self) -> None:
        """Up to sixteen ports are allowed; a repeated one counts once."""
        ports = [f"port={n}" for n in range(1, 17)]
        self.assertEqual(16, len(asked("&".join(ports * 2)).ports))
        self.assertEqual(
            "17 ports are not allowed: request at most 16 at once",
            self.refusal("&".join([*ports, "port=17"])),
        )

    def test_missing_port(self) -> None:
        """Without a port the error has the line to type, with the given arguments."""
        for text, line in (
            ("", "/sd?port=9100"),
            ("group=a%26b&address=dns", "/sd?group=a%26b&address=dns&port=9100"),
        ):
            words = f"port is missing: request {line} or another port of the targets"
            self.assertEqual(words, self.refusal(text))
            asked(line.partition("?")[2])

    def test_port(self) -> None:
        """A port is a whole number from 1 to 65535 in plain digits."""
        words = "is not allowed: it must be a whole number from 1 to 65535"
        for text in ("0", "65536", "-1", "+1", "80.0", "http", "", "0x50", "²", "080"):
            for many in (f"port={text}", f"port=1&port={text}"):
                found = self.refusal(many.replace("+", "%2B"))
                self.assertEqual(f"port: {text!r} {words}", found)

    def test_unknown_parameter(self) -> None:
        """A parameter that is neither known nor in `others` is refused."""
        others = ("account",)
        for text, allowed, name in (
            *(("port=1&gruop=a", (), "gruop"), ("port=1&Group=a", (), "Group")),
            *(
                ("port=1&module=icmp", (), "module"),
                ("port=1&account=a", (), "account"),
            ),
            *(("port=1&=a", (), ""), ("port=1&a%0Ab=a", (), "a\nb")),
            ("port=1&%ff=a", (), "\N{REPLACEMENT CHARACTER}"),
            ("port=1&x=a&account=a", others, "x"),
        ):
            names = ", ".join((*allowed, "port", "group", "address"))
            line = f"{name!r} is not allowed: the parameters are {names}"
            self.assertEqual(line, self.refusal(text, allowed))
        self.assertEqual(asked("port=1"), asked("port=1&account=a", others))

    def test_address(self) -> None:
        """There is one kind of address, out of three."""
        for kind in ("ip", "ipv6", "dns"):
            self.assertEqual(kind, asked(f"port=1&address={kind}").address_kind)
        for kind in ("", "IP", "ipv4"):
            self.assertEqual(
                f"address: {kind!r} is not allowed: it must be ip, ipv6, dns",
                self.refusal(f"port=1&address={kind}"),
            )
        self.assertIn("more than one", self.refusal("port=1&address=ip&address=ip"))

    def test_empty_group(self) -> None:
        """An empty group, as an unset template leaves it, does not mean all."""
        for text in ("port=1&group=", "port=1&group=a&group="):
            self.assertIn("it must be the id or name", self.refusal(text))

    @given(
        st.dictionaries(st.binary(), st.lists(st.binary(), min_size=1)),
        st.sampled_from(((), (b"9100",))),
    )
    def test_any(
        self, arguments: dict[bytes, list[bytes]], ports: tuple[bytes, ...]
    ) -> None:
        """Any query is parsed or refused in one line."""
        try:
            found = parse_query({**arguments, b"port": ports})
        except QueryError as wrong:
            self.assertEqual(1, len(str(wrong).splitlines()))
        else:
            self.assertEqual((9100,), found.ports)

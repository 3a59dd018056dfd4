"""Fuzz target: the addresses and names of `/lookup`.

* An address is refused with ValueError only, in one line.
* All spellings of an address have one key, which is that of the system.
* Case does not matter in a name.
"""

from ipaddress import IPv6Address, ip_address

from api_exporter.web.peer_table import address_key, name_key

SEEDS = (b"100.64.0.7", b"::ffff:100.64.0.7", b"fd00::1%eth0", b"Laptop.Example.", b"")


def attempt(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    assert name_key(text.lower()) == name_key(text), text
    try:
        key = address_key(text)
    except ValueError:
        return
    assert len(key) in {4, 16}, key
    assert address_key(str(ip_address(key))) == key, key
    if len(key) == 4:
        assert address_key(str(IPv6Address(b"\0" * 10 + b"\xff\xff" + key))) == key

"""Nameservers, DNS settings and zones."""

from collections.abc import Iterator

from api_exporter.demo.groups import ALL, DECOMMISSIONED, ENGINEERING, SERVERS
from api_exporter.demo.moment import Moment
from api_exporter.demo.wire import xid


def nameservers(_moment: Moment) -> Iterator[object]:
    yield _nameserver_group(
        1,
        "public",
        _nameserver("1.1.1.1"),
        _nameserver("2606:4700:4700::1111"),
        groups=[ALL.id],
        primary=True,
    )
    yield _nameserver_group(
        2,
        "corp",
        _nameserver("10.20.0.53"),
        _nameserver("10.20.0.54", port=5353),
        description="split horizon",
        domains=["corp.example.com"],
        groups=[ENGINEERING.id, SERVERS.id],
        search_domains_enabled=True,
    )
    yield _nameserver_group(
        3,
        "depot",
        _nameserver("10.40.0.53"),
        domains=None,
        enabled=False,
        groups=[DECOMMISSIONED.id],
    )


def settings(_moment: Moment) -> object:
    return {"disabled_management_groups": [SERVERS.id]}


def zones(_moment: Moment) -> Iterator[object]:
    yield {
        "distribution_groups": [ALL.id],
        "domain": "svc.example.internal",
        "enable_search_domain": True,
        "enabled": True,
        "id": xid("d2z", 1),
        "name": "svc",
        "records": [
            _record(1, "db", "A", "100.64.0.8"),
            _record(2, "db", "AAAA", "fd00:4e42:1a2b::8"),
            _record(3, "pg", "CNAME", "db.svc.example.internal"),
        ],
    }
    yield {
        "distribution_groups": [],
        "domain": "empty.internal",
        "enable_search_domain": False,
        "enabled": False,
        "id": xid("d2z", 2),
        "name": "empty",
        "records": [],
    }


def _nameserver(ip: str, port: int = 53) -> object:
    return {"ip": ip, "ns_type": "udp", "port": port}


def _nameserver_group(
    number: int, name: str, *nameservers: object, **fields: object
) -> object:
    return {
        "description": "",
        "domains": [],
        "enabled": True,
        "id": xid("d2m", number),
        "name": name,
        "nameservers": nameservers,
        "primary": False,
        "search_domains_enabled": False,
        **fields,
    }


def _record(number: int, host: str, type_: str, content: str) -> object:
    return {
        "content": content,
        "id": xid("d2h", number),
        "name": f"{host}.svc.example.internal",
        "ttl": 300,
        "type": type_,
    }

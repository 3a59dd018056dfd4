"""Access policies and posture checks. One policy is disabled, one leads to nobody."""

from collections.abc import Iterator

from api_exporter.demo.groups import (
    ALL,
    DECOMMISSIONED,
    ENGINEERING,
    RESEARCH,
    RUNNERS,
    SERVERS,
)
from api_exporter.demo.moment import Moment
from api_exporter.demo.wire import xid

TO_SERVERS = xid("d2o", 1)
TO_PRINTER = xid("d2o", 2)

_BASELINE = xid("d2c", 1)


def policies(moment: Moment) -> Iterator[object]:
    everybody, servers, empty = map(moment.in_rule, (ALL, SERVERS, DECOMMISSIONED))
    yield _policy(
        TO_SERVERS,
        "Default",
        {"destinations": [servers], "protocol": "all", "sources": [everybody]},
        description="everybody to the servers",
        checks=[_BASELINE],
    )
    yield _policy(
        TO_PRINTER,
        "print & scan",
        {
            "destinationResource": {"id": xid("d2r", 3), "type": "host"},
            "destinations": None,
            "port_ranges": [{"end": 9101, "start": 9100}],
            "ports": ["443", "631"],
            "protocol": "tcp",
            "sources": [moment.in_rule(RESEARCH)],
        },
        checks=[],
    )
    yield _policy(
        xid("d2o", 3),
        "to an empty group",
        {"destinations": [empty], "protocol": "icmp", "sources": [everybody]},
    )
    yield _policy(
        xid("d2o", 4),
        "no jobs on <prod>",
        {
            "action": "drop",
            "bidirectional": False,
            "destinations": [servers],
            "protocol": "udp",
            "sources": [moment.in_rule(RUNNERS)],
        },
    )
    yield _policy(
        xid("d2o", 5),
        "ssh",
        {
            "destinations": [servers],
            "protocol": "netbird-ssh",
            "sources": [moment.in_rule(ENGINEERING)],
        },
        enabled=False,
    )


def posture_checks(_moment: Moment) -> Iterator[object]:
    yield {
        "checks": {
            "nb_version_check": {"min_version": "0.60.0"},
            "os_version_check": {
                "android": {"min_version": "13"},
                "linux": {"min_kernel_version": "5.15.0"},
            },
        },
        "description": "",
        "id": _BASELINE,
        "name": "baseline",
    }
    yield {
        "checks": {
            "geo_location_check": {
                "action": "allow",
                "locations": [
                    {"city_name": "Berlin", "country_code": "DE"},
                    {"country_code": "FR"},
                ],
            },
            "peer_network_range_check": {
                "action": "deny",
                "ranges": ["192.168.1.0/24", "2001:db8::/32"],
            },
            "process_check": {
                "processes": [
                    {
                        "linux_path": "/usr/bin/edr",
                        "mac_path": "",
                        "windows_path": "C:\\Program Files\\edr\\edr.exe",
                    }
                ]
            },
        },
        "description": "all other kinds",
        "id": xid("d2c", 2),
        "name": "office only",
    }


def _policy(
    id_: str,
    name: str,
    rule: dict[str, object],
    *,
    description: str = "",
    enabled: bool = True,
    checks: list[str] | None = None,
) -> dict[str, object]:
    return {
        "description": description,
        "enabled": enabled,
        "id": id_,
        "name": name,
        "rules": [
            {
                "action": "accept",
                "bidirectional": True,
                "description": "",
                "enabled": True,
                "id": id_,
                "name": name,
                **rule,
            }
        ],
        "source_posture_checks": checks,
    }

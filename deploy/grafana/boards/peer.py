"""Peer: one machine or device."""

from deploy.grafana.board import board, variable
from deploy.grafana.panels import UNKNOWN, Column, look, stat, table, timeline
from deploy.grafana.queries import TARGET, any_of, label, of, one

_ONE = 'peer_id=~"$peer"'

_INFO = of("netbird_api_peer_info", _ONE)

_NEVER = 1_000_000
"""Days until the expiry of a login that does not expire."""

_PROPERTIES = {
    "Name": "peer",
    "Address": "ip",
    "IPv6 address": "ipv6",
    "DNS name": "dns_label",
    "Operating system": "os",
    "Kernel": "kernel_version",
    "Client": "version",
    "User interface": "ui_version",
    "Country": "country",
    "City": "city",
    "Public address": "connection_ip",
    "Host name": "hostname",
    "Serial number": "serial_number",
    "User": "user_id",
    "SSH server": "ssh_enabled",
    "Ephemeral": "ephemeral",
}
"""Labels of the peer by their words."""


def _properties() -> str:
    """Return a sample for each property, whose value is its place."""

    def of_label(number: int, words: str, name: str, series: str) -> str:
        found = label(series, "value", "$1", name, "(.*)")
        return f"{number} * {one(label(found, 'property', words), 'property', 'value')}"

    rows = [
        of_label(number, words, name, of("netbird_api_peer_info", _ONE, f'{name}!=""'))
        for number, (words, name) in enumerate(_PROPERTIES.items(), 1)
    ]
    user = of("netbird_api_user_info", 'name!=""')
    with_name = f"{_INFO} * on ({TARGET}, user_id) group_left (name) {user}"
    rows.append(of_label(len(rows) + 1, "User’s name", "name", with_name))
    return f"sort({any_of(*rows)})"


def made() -> str:
    connected = of("netbird_api_peer_connected", _ONE)
    seen = of("netbird_api_peer_last_seen_timestamp_seconds", _ONE)
    expired = of("netbird_api_peer_login_expired", _ONE)
    expires = of("netbird_api_peer_login_expiration_timestamp_seconds", _ONE)
    waits = of("netbird_api_peer_approval_required", _ONE)
    days = f"clamp_min((max({expires}) - time()) / 86400, 0)"
    # Only where the accounts are known, a peer without an expiry never expires.
    accounts = of("api_exporter_resource_up", 'resource="accounts"')
    never = f"max({_INFO} and on (cluster, account) {accounts} == 1)"
    info = one(of("netbird_api_peer_info"), "peer", "ip", "peer_id")
    peer = variable(
        "peer",
        "Peer",
        f'query_result(label_join({info}, "text", " ", "peer", "ip"))',
        refresh=1,
        regex='/peer_id="(?<value>[^"]*)".*text="(?<text>[^"]*)"/',
    )
    return board(
        "peer",
        "Peer",
        "One peer: state, changes, login, groups.",
        [
            stat(
                "State",
                (0, 0, 6, 4),
                "Whether the peer is connected to the management server, and may be.",
                {"": f"max({waits} + 1 or {expired} + 2 or {connected})"},
                look(
                    words={
                        0: ("offline", "red"),
                        1: ("connected", "green"),
                        2: ("waits for approval", "orange"),
                        3: ("login expired", "orange"),
                    },
                    empty=UNKNOWN,
                ),
                solid=True,
                size=30,
            ),
            stat(
                "Offline since",
                (6, 0, 6, 4),
                "When the peer disconnected.",
                {"": f"1000 * max({seen})"},
                look("dateTimeFromNow", colour="text", empty="–"),
                size=30,
            ),
            stat(
                "Changes",
                (12, 0, 6, 4),
                "Connects and disconnects in the chosen time.",
                {"": f"max(changes({connected}[$__range]))"},
                look("none", colour="text", empty=UNKNOWN),
            ),
            stat(
                "Login",
                (18, 0, 6, 4),
                "Days until the user has to log in again.",
                {"": f"{days} or {_NEVER} * {never}"},
                look(
                    "suffix: days",
                    decimals=1,
                    colour="text",
                    words={0: ("expired", "text"), _NEVER: ("never expires", "text")},
                    empty=UNKNOWN,
                ),
                size=30,
            ),
            timeline(
                "Connection",
                (0, 4, 24, 5),
                "A gap: no exporter answered. While NetBird is not read, the peer has"
                " the state of the last time.",
                {
                    "{{peer}}": one(connected, "peer"),
                    "reading NetBird": f"2 + {one(of('netbird_api_up'))}",
                },
                {
                    1: ("connected", "green"),
                    0: ("offline", "red"),
                    3: ("read", "blue"),
                    2: ("not read", "purple"),
                },
            ),
            table(
                "Properties",
                (0, 9, 12, 12),
                "City, public address, host name, serial number and the user's name"
                " need EXPOSE_PERSONAL_DATA.",
                [_properties()],
                [
                    Column("property", "Property", look(width=170)),
                    Column("value", "This peer"),
                    Column("Value", "place", look(hidden=True)),
                ],
                sort={},
                empty="The peer is not known",
            ),
            table(
                "Groups",
                (12, 9, 12, 12),
                "Groups of the peer.",
                [one(of("netbird_api_group_member", _ONE), "group")],
                [
                    Column("group", "Group"),
                    Column("Value", "member", look(hidden=True)),
                ],
                sort={"Group": False},
                empty="None is known. Groups need COLLECTORS=default,memberships",
            ),
        ],
        variables=[peer],
    )

"""Network: is it all right, what is broken, and since when."""

from deploy.grafana.board import KEPT, board
from deploy.grafana.panels import (
    BACKGROUND,
    HIDDEN,
    RANKED,
    SOON,
    STATES,
    THRESHOLDS,
    UNKNOWN,
    Column,
    Json,
    bars,
    behind,
    fold,
    large,
    lines,
    look,
    stat,
    table,
    timeline,
)
from deploy.grafana.queries import (
    STATE,
    TARGET,
    TROUBLES,
    any_of,
    any_one,
    findings,
    label,
    named_accounts,
    of,
    one,
    or_zero,
    total,
)

_PEERS = total(of("netbird_api_peers"), "connected")
_NOW = one(of("netbird_api_peers", 'connected="true"'), "connected")
_BEFORE = _NOW.replace("})", "} offset 1h)")
_CONNECTED = f"sum({_NOW})"

_ROWS = 20
"""Networks that a panel can show."""

_WITH_RESOURCES = (
    f"and on ({TARGET}, network_id)"
    f""" {of("netbird_api_network_resources", 'enabled="true"')} > 0"""
)


def _routing(connected: str, peers: str) -> str:
    """Return 2 if several routing peers are connected, or the only one; 1 if one of
    several is; 0 if none is.
    """
    return (
        f"(clamp_max({connected}, 2) + ({connected} == bool 1) * ({peers} == bool 1))"
    )


def _by_destination(peers: str) -> str:
    """Return the routing peers of routes that replace each other."""
    info = of("netbird_api_route_info")
    return (
        f"sum by ({TARGET}, network_id, network)"
        f" ({of(peers)} * on ({TARGET}, route_id) group_left (network) {info})"
    )


_ROUTING = of("netbird_api_network_routing_peers_connected")


def _of_each(expression: str) -> str:
    """Return the value of one exporter for each network, or destination of routes."""
    return one(expression, "network_id", "network")


_NETWORKS = _of_each(f"{_ROUTING} {_WITH_RESOURCES}")

_KNOWN = f"""\
{of("netbird_api_networks")} == 0
  or {_ROUTING} and on ({TARGET}) {of("netbird_api_network_resources")}"""
"""Has series while it is known whether networks have routing peers."""

_LINK = ("Peer", f"/d/netbird-peer?var-peer=${{__data.fields.peer_id}}&{KEPT}")


def _headline() -> list[Json]:
    return [
        stat(
            "The network",
            (0, 0, 6, 6),
            "The worst finding of the exporter, or that resources cannot be read."
            " A click opens its status page.",
            {"": f"topk(1, {STATE}) or on () (vector(4) unless on () {of('up')} == 1)"},
            look(
                words=STATES,
                empty=UNKNOWN,
                link=("Status page", "http://${__field.labels.instance}/"),
            ),
            solid=True,
            size=30,
        ),
        stat(
            "Findings",
            (6, 0, 6, 6),
            "The number of findings by severity.",
            {name: findings(name) for name in ("critical", "warning", "info")},
            look("none", empty=UNKNOWN),
            overrides=RANKED,
            solid=True,
            size=30,
        ),
        stat(
            "Connected peers",
            (12, 0, 6, 6),
            "Connected peers now, and over the chosen time.",
            {"": _CONNECTED},
            look("none", colour="blue", empty=UNKNOWN),
            course=True,
        ),
        stat(
            "Change in 1 h",
            (18, 0, 6, 3),
            "Connected peers now against an hour ago, of accounts that were read both"
            " times.",
            {
                "": f"100 * (sum({_NOW} and {_BEFORE})\n"
                f"  / (sum({_BEFORE} and {_NOW}) > 0) - 1)"
            },
            look(
                "percent",
                decimals=0,
                limits=large({None: "red", -33: "orange", -15: "none"}),
                empty=UNKNOWN,
            ),
        ),
        stat(
            "Networks down",
            (18, 3, 6, 3),
            "Networks with resources and without a connected routing peer.",
            {"": or_zero(f"count({_NETWORKS} == 0)", _KNOWN)},
            look("none", limits={None: "text", 1: "red"}, empty=UNKNOWN),
        ),
    ]


def _causes() -> list[Json]:
    words = {
        "1": ("critical", "red"),
        "2": ("warning", "orange"),
        "3": ("info", "grey"),
    }
    runbook = "http://${__data.fields.instance}/runbooks#${__value.raw}"
    return [
        table(
            "Findings, the worst and newest first",
            (0, 6, 24, 9),
            "A click on the finding opens its runbook. Of an exporter that is down, the"
            " time is at most six hours.",
            [TROUBLES],
            [
                Column(
                    "rank",
                    "Severity",
                    look(words=words, cellOptions=BACKGROUND, width=85),
                ),
                Column(
                    "finding", "Finding", look(link=("Runbook", runbook), minWidth=240)
                ),
                Column("object", "Object", look(minWidth=120)),
                Column(
                    "Value", "Since", look("dateTimeFromNow", align="left", width=130)
                ),
                Column("instance", "instance", HIDDEN),
                Column("object_type", "object_type", HIDDEN),
                Column("object_id", "object_id", HIDDEN),
            ],
            sort={"Severity": False, "Since": True},
            empty="No finding is known",
        ),
        lines(
            "Findings over time",
            (0, 15, 12, 6),
            "Since when something is wrong.",
            {name: findings(name) for name in ("critical", "warning")},
            colours={"critical": "red", "warning": "orange"},
            stacked=True,
            steps=True,
            decimals=0,
        ),
        timeline(
            "Reading NetBird",
            (12, 15, 12, 6),
            "Whether an exporter can read the NetBird API. In a gap, none answered.",
            {"{{account}}": named_accounts(one(of("netbird_api_up")))},
            {1: ("read", "green"), 0: ("failed", "red")},
            empty="No exporter answered",
        ),
    ]


def _course() -> list[Json]:
    routes = _routing(
        _by_destination("netbird_api_route_routing_peers_connected"),
        _by_destination("netbird_api_route_routing_peers"),
    )
    worst = f"min by (cluster, account, network_id) ({_of_each(routes)})"
    routes = label(worst, "network", "route $1", "network_id", "(.*)")
    networks = _of_each(
        f"{_routing(_ROUTING, of('netbird_api_network_routing_peers'))}"
        f" {_WITH_RESOURCES}"
    )
    both = any_of(networks, routes)
    shown = f"2 + ({total(of('netbird_api_networks'))} <= bool {_ROWS} or vector(1))"
    return [
        lines(
            "Connected peers over time",
            (0, 21, 12, 8),
            "Connected peers, and all.",
            {"connected": _CONNECTED, "all": _PEERS},
            colours={"connected": "blue", "all": "text"},
            decimals=0,
        ),
        timeline(
            "Networks and routes",
            (12, 21, 12, 8),
            "Networks with resources, and routes. Reachable: two routing peers are"
            f" connected, or the only one. Of more than {_ROWS} networks those that are"
            " not.",
            {"{{network}} {{account}}": f"({both})\n  < on () group_left () ({shown})"},
            {
                2: ("reachable", "green"),
                1: ("one routing peer left", "orange"),
                0: ("unreachable", "red"),
            },
            empty="No network is known",
        ),
        lines(
            "Lost within 10 minutes",
            (0, 29, 12, 7),
            "Peers that were connected ten minutes before. Machines are those that were"
            " enrolled with a setup key.",
            {"machines": _lost("setup_key"), "people’s devices": _lost("user")},
            colours={"machines": "red", "people": "blue"},
            steps=True,
            decimals=0,
        ),
    ]


def _lost(who: str) -> str:
    offline = of(
        "netbird_api_peers_by_enrolment", f'enrolled_by="{who}"', 'connected="false"'
    )
    return total(f"{offline} - min_over_time({offline}[10m])")


def _offline(who: str) -> str:
    """Return seconds offline of the 200 newest."""
    seen = of("netbird_api_peer_last_seen_timestamp_seconds")
    info = of("netbird_api_peer_info", who)
    kept = "cluster, account, peer_id"
    return (
        f"bottomk(200, time() - {one(seen, 'peer_id', 'peer')}"
        f" * on ({kept}) group_left (ip, os, version, user_id) {any_one(info, kept)})"
    )


def _offline_table(
    title: str, at: tuple[int, int, int, int], meaning: str, who: str
) -> Json:
    user = [Column("user_id", "User", look(minWidth=160))] if "!=" in who else []
    return table(
        title,
        at,
        meaning,
        [_offline(who)],
        [
            Column("peer", "Peer", look(link=_LINK, minWidth=140)),
            Column("Value", "Offline for", look("s", decimals=0, width=100)),
            Column("ip", "Address", look(width=115)),
            *user,
            Column("os", "System", look(minWidth=150)),
            Column("version", "Version", look(width=110)),
            Column("peer_id", "peer_id", HIDDEN),
        ],
        sort={"Offline for": False},
        empty="None is known to be offline",
    )


def _soonest(expression: str, *by: str) -> str:
    """Return the least value for each name: names may repeat."""
    return f"min by ({', '.join(['cluster', 'account', *by])}) ({expression})"


def _expiries() -> str:
    """Return the days until each key, token and invite expires."""

    def days(kind: str, metric: str, name: str, only: str = "") -> str:
        expires = of(f"netbird_api_{metric}_expiration_timestamp_seconds")
        left = _soonest(f"({expires} - time()) / 86400 > 0 {only}", name)
        return label(label(left, "what", "$1", name, "(.*)"), "kind", kind)

    valid = f"and on ({TARGET}, setup_key_id) {of('netbird_api_setup_key_valid')} == 1"
    everything = any_of(
        days("setup key", "setup_key", "setup_key", valid),
        days("access token", "access_token", "token"),
        days("proxy token", "proxy_token", "proxy_token"),
        days("invite", "user_invite", "user_invite_id"),
    )
    return f"bottomk(20, {_soonest(everything, 'kind', 'what')})"


def _expires() -> list[Json]:
    return [
        _offline_table(
            "Offline machines",
            (0, 36, 24, 9),
            "Offline peers that were enrolled with a setup key, the newest first.",
            'user_id=""',
        ),
        table(
            "Next to expire",
            (12, 29, 12, 7),
            "Setup keys that are valid, tokens of proxies and of the exporter's user,"
            " and invites.",
            [_expiries()],
            [
                Column("kind", "Kind", look(width=105)),
                Column("what", "Name", look(minWidth=90)),
                Column("Value", "Days left", behind(SOON, decimals=1, width=90)),
            ],
            sort={"Days left": False},
            empty="No expiry is known",
        ),
    ]


def _people() -> Json:
    login = of("netbird_api_peer_login_expiration_timestamp_seconds")
    connected = of("netbird_api_peer_connected")
    left = one(
        f"({login} - time()) / 3600 > 0 and on ({TARGET}, peer_id) {connected} == 1",
        *("peer_id", "peer"),
    )
    return fold(
        "People’s devices",
        45,
        stat(
            "Devices and users that wait",
            (0, 46, 24, 4),
            "Devices whose login has expired, and devices and users that wait for"
            " approval.",
            {
                "login expired": total(of("netbird_api_peers_login_expired")),
                "devices to approve": total(of("netbird_api_peers_approval_required")),
                "users to approve": total(of("netbird_api_users_pending_approval")),
            },
            look("none", colour="text", empty=UNKNOWN),
        ),
        table(
            "Logins, the next to expire first",
            (0, 50, 10, 10),
            "Connected devices.",
            [f"bottomk(20, {left})"],
            [
                Column("peer", "Peer", look(link=_LINK)),
                Column("Value", "Hours left", look("none", decimals=1, width=110)),
                Column("peer_id", "peer_id", HIDDEN),
            ],
            sort={"Hours left": False},
            empty="No expiry is known",
        ),
        _offline_table(
            "Offline devices",
            (10, 50, 14, 10),
            "Offline peers of users, the newest first.",
            'user_id!=""',
        ),
    )


def _inventory() -> Json:
    def most(by: str, metric: str) -> str:
        return f"topk(10, sum by ({by}) ({one(of(metric), by)}))"

    count = look("none", colour="blue", least=0, empty="None")
    members = of("netbird_api_group_peers_connected")
    group = ("group_id", "group")
    kinds = ("role", "status", "service_user")
    used = f"""\
{one(f"sum by ({TARGET}) ({of('netbird_api_peers')})")}
  / {one(of("netbird_api_account_network_addresses"))}"""
    return fold(
        "Inventory",
        46,
        bars(
            "Operating systems",
            (0, 47, 8, 10),
            "Peers by operating system.",
            {"{{os}}": most("os", "netbird_api_peers_by_os")},
            count,
        ),
        bars(
            "Client versions",
            (8, 47, 8, 10),
            "The ten most common versions.",
            {"{{version}}": most("version", "netbird_api_peers_by_version")},
            count,
        ),
        bars(
            "Countries",
            (16, 47, 8, 10),
            "The ten most common countries.",
            {"{{country}}": most("country", "netbird_api_peers_by_country")},
            count,
        ),
        table(
            "Groups",
            (0, 57, 12, 8),
            "Connected and all members of each group.",
            [one(members, *group), one(of("netbird_api_group_peers"), *group)],
            [
                Column("group", "Group"),
                Column("Value #A", "Connected"),
                Column("Value #B", "Members"),
                Column("group_id", "group_id", HIDDEN),
            ],
            sort={"Members": True},
            empty="No group is known",
        ),
        stat(
            "Users and policies",
            (12, 57, 12, 4),
            "All users with service users, blocked users, and policies in force.",
            {
                "users": total(of("netbird_api_users"), *kinds),
                "blocked": total(of("netbird_api_users_blocked")),
                "policies": total(of("netbird_api_policies", 'enabled="true"')),
            },
            look("none", colour="text", empty=UNKNOWN),
        ),
        bars(
            "Addresses used",
            (12, 61, 12, 4),
            "The share of each account's address range that peers use.",
            {"{{account}}": named_accounts(f"topk(10, {used})")},
            look(
                "percentunit",
                decimals=1,
                least=0,
                most=1,
                limits={None: "blue", THRESHOLDS.shares["addresses_used"]: "red"},
                empty=UNKNOWN,
            ),
        ),
    )


def made() -> str:
    return board(
        "network",
        "Network",
        "State of the network, from the NetBird API.",
        [*_headline(), *_causes(), *_course(), *_expires(), _people(), _inventory()],
    )

"""All sources: NetBird's own metrics beside the exporter's, where they are scraped."""

from deploy.grafana.board import board
from deploy.grafana.panels import HIDDEN, Column, bars, lines, look, stat, table
from deploy.grafana.queries import any_one, label, of, one

_OTHERS = 'cluster=~"$cluster"'

_CLIENTS = 'cluster=~"$cluster", account=~"$account"'

_SERVER = f'{{__name__=~"management_grpc_connected_streams(_ratio)?", {_OTHERS}}}'

_SIGNAL = f'{{__name__=~"(signal_)?active_peers", {_OTHERS}}}'

_RELAYS = f"relay_peers_active{{{_OTHERS}}}"

_PROXIES = f'{{__name__=~"proxy_domains_count(_ratio)?", {_OTHERS}}}'

_MANAGED = f"netbird_management_connected{{{_CLIENTS}}}"

_NO_CLIENT = "No client is scraped: see docs/metrics.md"


def _by_peer(expression: str, how: str = "max") -> str:
    return f"{how} by (cluster, account, peer_id) ({expression})"


def _latency() -> str:
    """Return the highest mean latencies, by the name that the API has for the peer."""
    measured = f"netbird_peer_latency_seconds{{{_CLIENTS}}}"
    key = "cluster, account, peer"
    mean = f"topk(20, avg by ({key}) ({measured}))"
    info = of("netbird_api_peer_info")
    names = label(
        label(info, "name", "$1", "peer", "(.*)"), "peer", "$1", "dns_label", "(.+)"
    )
    # The latencies come first: without any, no name is looked up.
    return f"{mean} * on ({key}) group_left (name) {any_one(names, key)}"


def made() -> str:
    connected = of("netbird_api_peers", 'connected="true"')
    through = f"netbird_peers_connected{{{_CLIENTS}, connection_type%s}}"
    words = {1: ("connected", "green"), 0: ("no", "red")}
    shown = look(words=words, align="left")
    process = "cluster, job, instance"
    sources = {
        "exporters": f"count(count by ({process}) ({of('netbird_api_up')}))",
        "management servers": f"count({_SERVER})",
        "relays": f"count({_RELAYS})",
        "signal servers": f"count({_SIGNAL})",
        "clients": f"count({_MANAGED})",
        "reverse proxies": f"count({_PROXIES})",
    }
    return board(
        "sources",
        "All sources",
        "The NetBird API beside the servers' and the clients' own metrics.",
        [
            stat(
                "Processes that are scraped",
                (0, 0, 24, 4),
                "How many of each kind Prometheus scrapes. docs/metrics.md has"
                " their jobs.",
                {kind: f"{count} or vector(0)" for kind, count in sources.items()},
                look("none", colour="text"),
            ),
            lines(
                "Connected peers by source",
                (0, 4, 12, 8),
                "The NetBird API, the management server's streams, the signal server"
                " and the relays. The first three are about equal. The API follows"
                " about one minute later.",
                {
                    "API": f"sum({one(connected)})",
                    "management": f"sum({_SERVER})",
                    "signal": f"sum({_SIGNAL})",
                    "relay": f"sum({_RELAYS})",
                },
            ),
            bars(
                "Latency to peers",
                (12, 4, 12, 8),
                "The twenty highest mean latencies that clients measure, by the other"
                " peer.",
                {"{{name}}": _latency()},
                look("s", colour="blue", least=0, empty=_NO_CLIENT),
            ),
            table(
                "Peers whose client is scraped",
                (0, 12, 24, 8),
                "The API's view and the client's view of each peer.",
                [
                    one(of("netbird_api_peer_connected"), "peer_id", "peer")
                    + f" and on (cluster, account, peer_id) {_by_peer(_MANAGED)}",
                    _by_peer(_MANAGED),
                    _by_peer(f"netbird_signal_connected{{{_CLIENTS}}}"),
                    _by_peer(through % '!~"relay.*"', "sum"),
                    _by_peer(through % '=~"relay.*"', "sum"),
                ],
                [
                    Column("peer", "Peer", look(minWidth=140)),
                    Column("Value #A", "In the API", shown),
                    Column("Value #B", "Management", shown),
                    Column("Value #C", "Signal", shown),
                    Column("Value #D", "Direct connections"),
                    Column("Value #E", "Relayed connections"),
                    Column("peer_id", "peer_id", HIDDEN),
                ],
                sort={"Management": False},
                empty=_NO_CLIENT,
            ),
            lines(
                "Relay traffic",
                (0, 20, 12, 8),
                "Bytes through the relays.",
                {
                    f"{way} {{{{instance}}}}": "rate(relay_transfer_"
                    f"{way}_bytes_total{{{_OTHERS}}}[$__rate_interval])"
                    for way in ("sent", "received")
                },
                "Bps",
                empty="No relay is scraped: see docs/metrics.md",
            ),
            lines(
                "Reverse proxy requests",
                (12, 20, 12, 8),
                "HTTP requests as the proxies count them, and as the access log has"
                " them. The log may lack rows.",
                {
                    "proxy {{instance}}": "rate(proxy_http_request_counter_total"
                    f"{{{_OTHERS}}}[$__rate_interval])",
                    "access log {{account}}": one(
                        "sum by (cluster, account, job, instance) (rate("
                        + of(
                            "api_exporter_access_log_requests_total", 'protocol="http"'
                        )
                        + "[$__rate_interval]))"
                    ),
                },
                "reqps",
                empty="No access log is read, and no proxy is scraped",
            ),
        ],
    )

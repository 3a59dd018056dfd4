"""The reverse proxy: its services in several states, its clusters and its tokens."""

from collections.abc import Iterable

from api_exporter.demo.go_json import rfc3339, xid
from api_exporter.demo.incidents import NO_CERTIFICATE, NO_TUNNEL, OPEN, OWN_PROXY_DOWN
from api_exporter.demo.resource import Moment, Record, Template
from api_exporter.demo.schedules import DAY, HOUR, MINUTE, WEEK


def services(moment: Moment, template: Template) -> Iterable[Record]:
    wiki = template.records[1]
    issued = rfc3339(moment.latest(60 * DAY))
    active = {"status": "active", "certificate_issued_at": issued}
    failed = {"status": "certificate_failed"}
    cut, pending = {"status": "tunnel_not_created"}, {"status": "certificate_pending"}
    shop = failed if NO_CERTIFICATE.lasts(moment.at) else active
    new = cut if NO_TUNNEL.lasts(moment.at) else pending
    states = (active, active, shop, new, cut, active)
    for service, state in zip(template.records, states, strict=True):
        service["meta"] = service["meta"] | state
    if OPEN.lasts(moment.at):
        wiki["auth"] = {}
    return template.records


def clusters(moment: Moment, template: Template) -> Iterable[Record]:
    """One of two proxies is updated every hour, one that is alone restarts.

    A cluster's id is that of one of its proxies, and a proxy has another at each start.
    """
    shared, own, lab = template.records
    updated = moment.latest(HOUR)
    shared["id"] = xid("d2x", updated)
    shared["connected_proxies"] = 1 if moment.at - updated < 5 * MINUTE else 2
    own["online"] = not OWN_PROXY_DOWN.lasts(moment.at)
    restarted = moment.latest(50 * MINUTE, 10 * MINUTE)
    lab["id"] = xid("d2x", restarted + 1)
    lab["online"] = moment.at - restarted >= 5 * MINUTE
    for cluster in own, lab:
        cluster["connected_proxies"] = int(cluster["online"])
    return template.records


def tokens(moment: Moment, template: Template) -> Iterable[Record]:
    """The one in use is renewed each week, a day after it is to end within two."""
    edge, _, leaked = template.records
    weekly, renewed = moment.latest(WEEK), moment.latest(90 * DAY)
    edge["created_at"] = rfc3339(weekly)
    edge["expires_at"] = rfc3339(weekly + 20 * DAY)
    edge["last_used"] = rfc3339(moment.latest(MINUTE))
    leaked["created_at"] = rfc3339(renewed)
    leaked["expires_at"] = rfc3339(renewed + 100 * DAY)
    return template.records

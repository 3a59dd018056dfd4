"""The table of resources."""

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import User
from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.ports import UpstreamError
from api_exporter.subjects.reverse_proxy import (
    ProxyCluster,
    ProxyService,
    service_names,
)
from api_exporter.subjects.table import RESOURCE_BY_NAME, RESOURCES, RULES, SUBJECTS
from tests.bodies import body
from tests.inventories import inventory_of

TOKENS = RESOURCE_BY_NAME["access_tokens"]


def as_user(id_: str) -> Inventory:
    return inventory_of(users=(User(id="someone"), User(id=id_, is_current=True)))


class ResourcesTests(SynchronousTestCase):
    def test_first(self) -> None:
        """The peers come first, and all names differ."""
        self.assertEqual("peers", next(iter(RESOURCE_BY_NAME)))
        every = [r.name for subject in SUBJECTS for r in subject.resources]
        self.assertEqual(sorted(every), sorted(RESOURCE_BY_NAME))

    def test_records(self) -> None:
        """Each decoder makes records of the type that it names."""
        for resource in RESOURCE_BY_NAME.values():
            if resource.name == ACCESS_LOG:  # its rows are not kept
                continue
            found = resource.decoder.decode(body(resource.name)).records
            self.assertEqual({resource.decoder.record}, {*map(type, found)})

    def test_service_names(self) -> None:
        """The names of services by id, once the services are known."""
        self.assertIsNone(service_names(inventory_of()))
        services = (ProxyService(id="s", name="shop"),)
        known = inventory_of(proxy_services=services)
        self.assertEqual({"s": "shop"}, service_names(known))

    def test_paths(self) -> None:
        """No two resources have one path, and no path depends on an empty inventory."""
        paths = [resource.path for resource in RESOURCES]
        self.assertEqual(len(paths), len(set(paths)))
        for resource in RESOURCES:
            if resource is not TOKENS:
                self.assertFalse(resource.is_own)
                located = resource.request_path(inventory_of(), 0.0)
                dormant = resource.name in RULES.dormant_without
                self.assertEqual(None if dormant else resource.path, located)

    def test_absent(self) -> None:
        """A missing path, a refusal and a failure are distinguished."""
        unknown_path = UpstreamError("not_found", "404", unsupported=True)
        routers = "network: routers not found"
        too_old = UpstreamError("not_found", f"404: {routers}", server_message=routers)
        forbidden = UpstreamError("forbidden", "403: no")
        gone = UpstreamError("not_found", "404: gone", server_message="gone")
        foreign = UpstreamError("not_found", "something answers 404")
        message = "invite links are only available with embedded identity provider"
        not_embedded = UpstreamError(
            "http_4xx", f"412: {message}", server_message=message
        )
        for name, absent, refused in (
            ("peers", (), ()),
            ("groups", (unknown_path,), (forbidden,)),
            ("network_routers", (unknown_path, too_old), (forbidden,)),
            ("user_invites", (unknown_path, not_embedded), (forbidden,)),
            ("access_tokens", (unknown_path,), (too_old, forbidden, gone)),
            (
                *("current_user", (unknown_path,)),
                (too_old, forbidden, gone, not_embedded),
            ),
        ):
            resource = RESOURCE_BY_NAME[name]
            for error in (
                unknown_path,
                too_old,
                forbidden,
                gone,
                foreign,
                not_embedded,
            ):
                case = f"{name}, {error}"
                self.assertEqual(error in absent, resource.absent(error), case)
                self.assertEqual(error in refused, resource.refused(error), case)

    def test_intervals(self) -> None:
        """By default fewer than six requests a minute are sent, hourly at least."""
        intervals = {resource.interval / 60 for resource in RESOURCES}
        self.assertEqual({0.5, 5, 10, 15, 60}, intervals)
        self.assertLess(sum(60 / resource.interval for resource in RESOURCES), 6)
        self.assertEqual(
            30, RESOURCE_BY_NAME[ACCESS_LOG].interval
        )  # as docs/logs.md says

    def test_rests(self) -> None:
        """Lists without records are read less often, and so are slow ones."""
        rare = [resource for resource in RESOURCES if resource.idle_intervals > 1]
        self.assertTrue(rare)
        for resource in rare:
            self.assertEqual(60, resource.min_interval(1, 60, 0))
            idle = resource.idle_intervals * 60
            self.assertEqual(idle, resource.min_interval(0, 60, 0))
        [costly] = [resource for resource in RESOURCES if resource.cost]
        self.assertEqual(300, costly.min_interval(1, 60, 3))


class AccessLogTests(SynchronousTestCase):
    def test_pointless(self) -> None:
        """Without a service or a cluster the access log is not requested."""
        resource = RESOURCE_BY_NAME[ACCESS_LOG]
        service, cluster = ProxyService(id="a"), ProxyCluster(address="b")
        for inventory, asked, pointless in (
            (inventory_of(), True, False),
            (inventory_of(proxy_services=()), True, False),
            (inventory_of(proxy_services=(), proxy_clusters=()), False, True),
            (inventory_of(proxy_services=(service,)), True, False),
            (inventory_of(proxy_services=(service,), proxy_clusters=()), True, False),
            (inventory_of(proxy_services=(), proxy_clusters=(cluster,)), True, False),
        ):
            located = resource.request_path(inventory, 0.0)
            self.assertEqual("api/events/proxy" if asked else None, located)
            self.assertEqual(pointless, resource.has_no_records(inventory))
        self.assertFalse(TOKENS.has_no_records(inventory_of()))


class AccessTokensTests(SynchronousTestCase):
    @given(st.text(min_size=1).filter(lambda id_: id_ not in {".", ".."}))
    def test_any_id(self, id_: str) -> None:
        """Any id can be read back from the path, which always has four segments."""
        path = TOKENS.request_path(as_user(id_), 0.0) or ""
        self.assertTrue(path.isascii())
        self.assertEqual(
            ["api", "users", id_, "tokens"], [*map(unquote, path.split("/"))]
        )

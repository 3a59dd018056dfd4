"""The entries of the JSON document of `--check`."""

from msgspec.structs import astuple
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.report_json import checked_resource
from api_exporter.checking.survey import ResourceCheck
from api_exporter.netbird.unknown import Unknown
from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import RESOURCE_BY_NAME

PATH = "api/users/current"


class ResourceTests(SynchronousTestCase):
    def test_states(self) -> None:
        """A resource has its state, records, failure and unknown names."""
        me = RESOURCE_BY_NAME["current_user"]
        refused = UpstreamError("forbidden", "403: no", request_id="d2i")
        limited = UpstreamError("rate_limited", "429")
        odd = Unknown(frozenset({"kind"}), frozenset({("role", "x")}))
        for check, expected in (
            (
                ResourceCheck(resource=me, records=1, rejected=2, unknown=odd),
                ("ok", 1, 2, None, None, ["kind", "role=x"]),
            ),
            (ResourceCheck(resource=me), ("skipped", None, 0, None, None, [])),
            (
                ResourceCheck(resource=me, restricted=True),
                ("restricted", None, 0, None, None, []),
            ),
            (
                ResourceCheck(resource=me, error=refused),
                ("unsupported", None, 0, "forbidden", "403: no (request id d2i)", []),
            ),
            (
                ResourceCheck(resource=me, error=limited),
                ("failing", None, 0, "rate_limited", "429", []),
            ),
        ):
            entry = astuple(checked_resource(check, 1e9))
            self.assertEqual(("current_user", PATH, *expected), entry)

"""The exporter's own metrics as text: both registries, in both formats."""

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, exposition
from prometheus_client.openmetrics import exposition as open_exposition
from prometheus_client.openmetrics import parser as openmetrics
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resource_state import ResourceState
from api_exporter.subjects.table import RESOURCE_BY_NAME
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.gauges import text
from tests.parts import attempt, process_telemetry


def registries() -> tuple[CollectorRegistry, ...]:
    """Return the registries of an account with read peers, and of the process."""
    states = dict.fromkeys(RESOURCE_BY_NAME, ResourceState(interval=30.0))
    states["peers"] = replace(
        states["peers"],
        records=5,
        rejected=1,
        seconds=0.4,
        ended_at=1000.5,
        last_success=1000.5,
    )
    account = AccountTelemetry(registry=CollectorRegistry(), states=states, created=7)
    account.count_attempt(attempt())
    return account.registry, process_telemetry('1.2 "\\n"').registry


def texts() -> list[str]:
    """Return the text format and OpenMetrics."""
    return [text(*registries(), in_openmetrics=om).decode() for om in (False, True)]


class TextTests(SynchronousTestCase):
    def test_created(self) -> None:
        """Only OpenMetrics says since when a counter counts, and has one end."""
        plain, open_ = texts()
        self.assertNotIn("_created", plain)
        self.assertIn('\napi_exporter_refreshes_created{resource="peers"} 7.0\n', open_)
        self.assertIn("\napi_exporter_log_lines_dropped_created 0.0\n", open_)
        self.assertEqual(1, open_.count("# EOF\n"))

    def test_both_registries(self) -> None:
        """The account's metrics come first; labels are escaped."""
        for page in texts():
            build = page.index('api_exporter_build_info{built=""')
            self.assertLess(page.index("netbird_api_up 1"), build)
            self.assertIn(r'version="1.2 \"\\n\""', page)

    def test_library(self) -> None:
        """Both formats equal those of prometheus_client, except for units.

        Its text format has families of the times of creation.
        """
        own, process = registries()
        for registry, kept in ((own, ""), (process, "#")):  # values change

            def lines(page: bytes, kept: str = kept) -> list[str]:
                every = (x for x in page.decode().splitlines() if x.startswith(kept))
                return [x for x in every if not x.startswith("# UNIT")]

            for theirs, in_openmetrics in (
                (exposition.generate_latest(registry), False),
                (open_exposition.generate_latest(registry), True),
            ):
                ours = text(registry, in_openmetrics=in_openmetrics)
                expected = lines(theirs)
                if not in_openmetrics:
                    expected = [line for line in expected if "_created" not in line]
                self.assertEqual(expected, lines(ours))

    def test_units(self) -> None:
        """OpenMetrics families in seconds or bytes have a unit."""
        _, page = texts()
        families = list(openmetrics.text_string_to_metric_families(page))
        for unit in ("seconds", "bytes"):
            named = {f.name for f in families if f.name.endswith(f"_{unit}")}
            self.assertEqual(named, {f.name for f in families if f.unit == unit})
            self.assertTrue(named)

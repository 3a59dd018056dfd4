"""Content negotiation by literal headers."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.negotiation import accepts_gzip, content_type

TEXT_0 = "text/plain; version=0.0.4; charset=utf-8"
TEXT_1 = "text/plain; version=1.0.0; charset=utf-8; escaping="
OPENMETRICS_0 = "application/openmetrics-text; version=0.0.1; charset=utf-8"
OPENMETRICS_1 = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping="

OPENMETRICS, TEXT = "application/openmetrics-text;version=", "text/plain;version="
PROMETHEUS_3 = (
    f"{OPENMETRICS}1.0.0;escaping=allow-utf-8;q=0.6,{OPENMETRICS}0.0.1;q=0.5,"
    f"{TEXT}1.0.0;escaping=allow-utf-8;q=0.4,{TEXT}0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3_UNDERSCORES = (
    f"{OPENMETRICS}1.0.0;escaping=underscores;q=0.5,{OPENMETRICS}0.0.1;q=0.4,"
    f"{TEXT}1.0.0;escaping=underscores;q=0.3,{TEXT}0.0.4;q=0.2,*/*;q=0.1"
)
PROMETHEUS_3_PROTOBUF = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
    f"encoding=delimited;q=0.7,{PROMETHEUS_3}"
)
PROMETHEUS_2_48 = (
    f"{OPENMETRICS}1.0.0,{OPENMETRICS}0.0.1;q=0.75,{TEXT}0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_2_5 = (
    "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,"
    "*/*;q=0.1"
)
PROMETHEUS_2_TEXT = f"{TEXT}0.0.4;q=1,*/*;q=0.1"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def answer(accept: str | None) -> str:
    """Return the Content-Type for an Accept header."""
    return content_type(accept).header().decode("ascii")


class ContentTypeTests(SynchronousTestCase):
    def answers(self, headers: dict[str, str]) -> None:
        for accept, expected in headers.items():
            self.assertEqual(expected, answer(accept), accept)

    def test_prometheus(self) -> None:
        """Each Prometheus version gets the best common format."""
        self.answers(
            {
                PROMETHEUS_3: f"{OPENMETRICS_1}allow-utf-8",
                PROMETHEUS_3_UNDERSCORES: f"{OPENMETRICS_1}underscores",
                PROMETHEUS_3_PROTOBUF: f"{OPENMETRICS_1}allow-utf-8",
                PROMETHEUS_2_48: f"{OPENMETRICS_1}underscores",
                PROMETHEUS_2_5: OPENMETRICS_0,
                PROMETHEUS_2_TEXT: TEXT_0,
            }
        )

    def test_others(self) -> None:
        """Without a common format the client gets the text format 0.0.4."""
        self.assertEqual(TEXT_0, answer(None))
        self.answers(
            dict.fromkeys(
                ["", " ", ",", BROWSER, "*/*", "text/*", "application/json", "image/*"],
                TEXT_0,
            )
        )

    def test_versions(self) -> None:
        """The client gets the requested version; without a known one, the oldest."""
        self.answers(
            {
                "text/plain": TEXT_0,
                "text/plain;version=0.0.4": TEXT_0,
                "text/plain;version=1.0.0": f"{TEXT_1}underscores",
                "application/openmetrics-text": OPENMETRICS_0,
                "application/openmetrics-text;version=0.0.1": OPENMETRICS_0,
                "application/openmetrics-text;version=1.0.0": (
                    f"{OPENMETRICS_1}underscores"
                ),
                "text/plain;version=9.9.9": TEXT_0,
                "application/openmetrics-text;version=9.9.9": TEXT_0,
                "application/openmetrics-text;version=9.9.9,"
                "application/openmetrics-text;version=0.0.1;q=0.1": OPENMETRICS_0,
                "text/plain;version=9.9.9,text/plain;version=1.0.0;q=0.1": (
                    f"{TEXT_1}underscores"
                ),
                "text/plain;version=": TEXT_0,
            }
        )

    def test_quality(self) -> None:
        """The highest quality wins; at equal quality the preferred format."""
        openmetrics, text = "application/openmetrics-text", "text/plain"
        self.answers(
            {
                f"{openmetrics};q=0.1,{text};q=0.2": TEXT_0,
                f"{text};q=0.1,{openmetrics};q=0.2": OPENMETRICS_0,
                f"{text},{openmetrics}": OPENMETRICS_0,
                f"{openmetrics},{text}": OPENMETRICS_0,
                f"{openmetrics};q=0.001,*/*;q=0.002": TEXT_0,
                f"{openmetrics};q=1.000": OPENMETRICS_0,
                f"{openmetrics};q=0,{text};q=0.1": TEXT_0,
                f"{text};q=0,{openmetrics};q=0.1": OPENMETRICS_0,
                f"{text};version=1.0.0;escaping=dots,{text};version=1.0.0": TEXT_1
                + "dots",
                f"{openmetrics};q=0": TEXT_0,
                f"{openmetrics};q=0.000": TEXT_0,
                "*/*;q=0": TEXT_0,
            }
        )

    def test_malformed_quality(self) -> None:
        """An element with an invalid quality is ignored."""
        for quality in (
            *("", "2", "1.001", "0.0001", "-1", ".5", "1e0", "nan", "½", "x"),
            *("0.x", "0.٣", "0.½"),
        ):
            accept = f"application/openmetrics-text;q={quality}"
            self.assertEqual(TEXT_0, answer(accept), quality)

    def test_writing(self) -> None:
        """Case, spaces and quotes do not matter."""
        self.answers(
            {
                ' Application/OpenMetrics-Text ; Version="1.0.0" ; Q=0.5 ': (
                    f"{OPENMETRICS_1}underscores"
                ),
                "TEXT/PLAIN;VERSION=1.0.0": f"{TEXT_1}underscores",
            }
        )

    def test_escaping(self) -> None:
        """A known escaping is in the header if the format supports escaping."""
        for escaping in ("allow-utf-8", "underscores", "dots", "values"):
            self.answers(
                {
                    f"text/plain;version=1.0.0;escaping={escaping}": TEXT_1 + escaping,
                    f"text/plain;version=0.0.4;escaping={escaping}": TEXT_0,
                }
            )

    def test_hostile_escaping(self) -> None:
        """An unknown escaping is never echoed."""
        for hostile in ("", "x", "dots\r\nSet-Cookie: a=b", "Dots", "ä", "\ud800"):
            accept = f"text/plain;version=1.0.0;escaping={hostile}"
            self.assertEqual(f"{TEXT_1}underscores", answer(accept))


class GzipTests(SynchronousTestCase):
    def test_accepted(self) -> None:
        """Gzip is sent if the header lists it or `*`, and does not refuse it."""
        for accepted, headers in (
            (True, ("gzip", "GZIP", "x-gzip", "gzip;q=0.001", "*", "*;q=0, gzip")),
            (True, ("gzip, deflate, br, zstd", "deflate, gzip;q=1.0, *;q=0.5")),
            (True, ("identity;q=0, *",)),
            (False, (None, "", "identity", "br, deflate", "gzipped", "gzip;q=x")),
            (False, ("gzip;q=0", "gzip; q=0.000", "gzip;q=0, *", "*;q=0")),
        ):
            for header in headers:
                self.assertIs(accepted, accepts_gzip(header), header)

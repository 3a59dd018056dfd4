"""An upstream with audit events or an access log, and the file that has them."""

from tests.integration.exporter import Answer, ExporterTestCase, Upstream, says
from tests.integration.programs import Running, start

TOKEN = "nbp_0canary0events0access0log0canary0001"


class EventLogTestCase(ExporterTestCase):
    """An upstream of which each answer is a method, and a file for the lines."""

    timeout = 1200

    def setUp(self) -> None:
        super().setUp()
        self.file = self.directory / "log.jsonl"
        case = self

        class Server(Upstream):
            def answer(self, path: str, authorization: str) -> Answer:  # noqa: ARG002
                return says(200, case.answer(path))

        self.upstream = Server(self).url

    def answer(self, target: str) -> bytes:
        """Return the body for a path with its query."""
        raise NotImplementedError

    def environ(self, **settings: str) -> dict[str, str]:
        return self.reading(self.upstream, UPSTREAM_API_TOKEN=TOKEN, **settings)

    def writing(self, **settings: str) -> Running:
        """Start an exporter that writes the file."""
        environ = self.environ(EVENTS_FILE=str(self.file), **settings)
        return start(self, self.exporter, self.directory, environ)

    def written(self) -> bytes:
        return self.file.read_bytes() if self.file.exists() else b""

    def lines(self) -> int:
        return self.written().count(b"\n")

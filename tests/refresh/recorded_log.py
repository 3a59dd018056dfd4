"""A log that keeps the bodies of its resource."""

from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import Fetch, ResponseBody
from api_exporter.refresh.pipeline import Log


class RecordedLog(Log):
    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def fetch(
        self, fetch: Fetch, path: str, max_seconds: float, _: Inventory
    ) -> ResponseBody:
        body = await fetch(path, max_seconds)
        self.bodies.append(body.data)
        return body

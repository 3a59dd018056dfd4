"""`/`: where to go from here."""

from html import escape

from api_exporter.web.page import Text

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>api-exporter</title></head>
<body>
<h1>api-exporter {version}</h1>
<p>Prometheus metrics of the NetBird network behind {upstream}.</p>
<ul>
<li><a href="{metrics}">Metrics</a></li>
<li><a href="/health">Health</a></li>
</ul>
</body>
</html>
"""


class Index(Text):
    """The landing page."""

    media_type = b"text/html; charset=utf-8"

    def __init__(self, *, version: str, upstream_url: str, metrics_path: str) -> None:
        super().__init__()
        self._text = _PAGE.format(
            version=escape(version),
            upstream=escape(upstream_url),
            metrics=escape(metrics_path),
        )

    def text(self) -> str:
        """The same for everybody."""
        return self._text

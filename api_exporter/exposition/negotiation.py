"""Content negotiation: the media type and encoding for Accept and Accept-Encoding.

Facts: Prometheus' content negotiation (docs: instrumenting/content_negotiation) and RFC
9110, section 12. No part of a request is echoed; unknown elements are ignored. The
default is the text format 0.0.4.
"""

from enum import Enum

from msgspec import Struct


class Format(Enum):
    """The supported formats, by descending preference at equal quality."""

    OPENMETRICS_1 = ("application/openmetrics-text", "1.0.0")
    OPENMETRICS_0 = ("application/openmetrics-text", "0.0.1")
    TEXT_1 = ("text/plain", "1.0.0")
    TEXT_0 = ("text/plain", "0.0.4")

    @property
    def openmetrics(self) -> bool:
        """True if the page ends in `# EOF`."""
        return self.value[0] == "application/openmetrics-text"


ESCAPINGS = ("allow-utf-8", "underscores", "dots", "values")
"""Ways to write non-ASCII names. All names are ASCII, so each gives the same page."""


class ContentType(Struct, frozen=True):
    """A format and, from version 1.0.0 on, its escaping."""

    format: Format
    escaping: str = ""

    def header(self) -> bytes:
        media, version = self.format.value
        text = f"{media}; version={version}; charset=utf-8"
        if self.escaping:
            text += f"; escaping={self.escaping}"
        return text.encode("ascii")


class _Element(Struct, frozen=True):
    media: str
    parameters: dict[str, str]
    quality: float


def content_type(accept: str | None) -> ContentType:
    choices = [
        (element.quality, -rank, _chosen(element, format_))
        for element in _elements(accept or "")
        for rank, format_ in enumerate(Format)
        if element.quality > 0 and _matches(element, format_)
    ]
    if not choices:
        return ContentType(Format.TEXT_0)
    return max(choices, key=lambda choice: choice[:2])[2]


def accepts_gzip(accept_encoding: str | None) -> bool:
    """Return whether gzip is accepted: by its name or `*`, with a quality above 0."""
    qualities = {w.media: w.quality for w in _elements(accept_encoding or "")}
    quality = qualities.get("gzip", qualities.get("x-gzip", qualities.get("*", 0.0)))
    return quality > 0


def _matches(element: _Element, format_: Format) -> bool:
    media, version = format_.value
    if element.media in {"*/*", "text/*"}:
        # A wildcard gets the format that every client can read.
        return format_ is Format.TEXT_0
    if element.media != media:
        return False
    # Without a version, the oldest one of the media type is meant.
    oldest = "0.0.1" if format_.openmetrics else "0.0.4"
    return element.parameters.get("version", oldest) == version


def _chosen(element: _Element, format_: Format) -> ContentType:
    if format_.value[1] != "1.0.0":
        return ContentType(format_)
    escaping = element.parameters.get("escaping")
    return ContentType(format_, escaping if escaping in ESCAPINGS else "underscores")


def _elements(header: str) -> list[_Element]:
    elements = []
    for element in header.split(","):
        media, *rest = (part.strip() for part in element.split(";"))
        parameters = {}
        for part in rest:
            name, _, value = part.partition("=")
            parameters[name.strip().lower()] = value.strip().strip('"')
        quality = _quality(parameters.pop("q", "1"))
        if media and quality is not None:
            elements.append(_Element(media.lower(), parameters, quality))
    return elements


def _quality(text: str) -> float | None:
    """Parse 0 to 1 with at most three decimals (RFC 9110, 12.4.2); otherwise None."""
    whole, _, decimals = text.partition(".")
    valid = whole in {"0", "1"} and len(decimals) <= 3
    if not valid or (decimals and not (decimals.isascii() and decimals.isdigit())):
        return None
    quality = float(text)
    return quality if quality <= 1 else None

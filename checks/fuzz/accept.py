"""Fuzz target: `Accept` and `Accept-Encoding`.

* The result is one of eleven types, in ASCII.
* A request for exactly the returned type gets the same type.
* White space around commas, capitals of a media type, and unknown media types change
  nothing.
"""

from api_exporter.exposition.negotiation import (
    ESCAPINGS,
    ContentType,
    Format,
    accepts_gzip,
    content_type,
)

TYPES = {
    ContentType(Format.TEXT_0),
    ContentType(Format.OPENMETRICS_0),
    *(ContentType(Format.TEXT_1, escaping) for escaping in ESCAPINGS),
    *(ContentType(Format.OPENMETRICS_1, escaping) for escaping in ESCAPINGS),
}

SEEDS = (
    b"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    b"application/openmetrics-text;version=0.0.1;q=0.5,"
    b"text/plain;version=1.0.0;escaping=underscores;q=0.4,*/*;q=0.2",
    b"text/plain;version=0.0.4;q=1,*/*;q=0.1",
    b'text/*;q=0, TEXT/PLAIN; version = "1.0.0"; escaping=values;q=1.000',
    b"gzip, x-gzip;q=0.001, *;q=0, identity",
)


def attempt(data: bytes) -> None:
    text = data.decode("latin-1")
    got = content_type(text)
    assert got in TYPES, got
    sent = got.header().decode("ascii")
    assert content_type(sent) == got, sent
    assert content_type(f"{text},image/png") == got, got
    assert content_type(text.replace(",", " ,\t")) == got, got
    if text.isascii():
        media = ",".join(
            ";".join((first.upper(), *rest))
            for first, *rest in (one.split(";") for one in text.split(","))
        )
        assert content_type(media) == got, media
        assert accepts_gzip(text.upper().replace("Q=", "q=")) == accepts_gzip(text)

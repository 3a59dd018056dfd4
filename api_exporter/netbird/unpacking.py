"""Decompression of bodies, the first step of decoding, for the compute thread."""

import zlib
from io import BytesIO

from api_exporter.ports import ResponseBody, UpstreamError

_STEP_BYTES = 1024 * 1024
"""The maximum number of bytes that one call decompresses to."""

_CHUNK = 64 * 1024
"""Compressed bytes for one call, which copies those that it does not consume."""

_MAX_OVERHEAD = 1024 * 1024
"""Bytes by which compressed data may be longer than its content."""

_GZIP = 16 + zlib.MAX_WBITS


def unpack(body: ResponseBody) -> bytes:
    """Return the data of a body, decompressed if it is gzip.

    The result takes at most nine eighths of the limit in memory. Several gzip members
    are one body, as for Go and curl. A body without any byte is empty, even if its
    header says gzip. Raises UpstreamError.
    """
    return body.mask(_unpack(body) if body.packed and body.data else body.data)


def _unpack(body: ResponseBody) -> bytes:
    packed, plain = BytesIO(body.data), BytesIO()  # getvalue() does not copy
    member = zlib.decompressobj(_GZIP)
    try:
        while (
            data := member.unconsumed_tail or member.unused_data or packed.read(_CHUNK)
        ):
            if packed.tell() - len(data) - plain.tell() > _MAX_OVERHEAD:
                message = "the gzip body has extra data at its end"
                raise UpstreamError("too_large", message)
            if member.eof:
                member = zlib.decompressobj(_GZIP)
            plain.write(member.decompress(data, _STEP_BYTES))
            if plain.tell() > body.limit:
                message = f"the body is longer than {body.limit} bytes"
                raise UpstreamError("too_large", message)
        plain.write(member.flush())
    except zlib.error:
        raise UpstreamError("decode", "the gzip body is damaged") from None
    if not member.eof:
        raise UpstreamError("decode", "the gzip body is incomplete")
    return plain.getvalue()

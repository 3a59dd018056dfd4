"""Decompression of bodies, for the compute thread: the first step of decoding."""

import zlib
from io import BytesIO

from api_exporter.ports import Body, UpstreamError

_STEP = 1024 * 1024
"""Bytes that are unpacked by one call."""

_READ = 64 * 1024
"""Packed bytes that one call is given: it copies those that it leaves."""

_OVERHEAD = 1024 * 1024
"""Bytes by which packed data may be longer than what it holds."""

_GZIP = 16 + zlib.MAX_WBITS


def unpack(body: Body) -> bytes:
    """Return the data of a body, unpacked if it is gzip.

    It takes no more memory than the limit and an eighth. Several members are one body,
    as for Go and curl. Raises UpstreamError.
    """
    if not body.packed:
        return body.data
    packed, plain = BytesIO(body.data), BytesIO()  # its value is its buffer: no copy
    member = zlib.decompressobj(_GZIP)
    try:
        while (
            data := member.unconsumed_tail or member.unused_data or packed.read(_READ)
        ):
            if packed.tell() - len(data) - plain.tell() > _OVERHEAD:
                message = "the gzip body has extra data at its end"
                raise UpstreamError("too_large", message)
            if member.eof:
                member = zlib.decompressobj(_GZIP)
            plain.write(member.decompress(data, _STEP))
            if plain.tell() > body.limit:
                message = f"the body is longer than {body.limit} bytes"
                raise UpstreamError("too_large", message)
        plain.write(member.flush())
    except zlib.error as error:
        message = f"the gzip body is damaged: {error}"
        raise UpstreamError("decode", message) from None
    if not member.eof:
        raise UpstreamError("decode", "the gzip body is incomplete")
    return plain.getvalue()

"""Deflate compression and CRC-32, by igzip in a quarter of zlib's time, else by zlib.

Both write deflate (RFC 1951), so every scraper reads either.

The CRC-32 of a concatenation follows from those of its parts: zlib's `crc32_combine`,
which Python's binding lacks. A CRC is a polynomial over GF(2) modulo P. Appending n
bytes to a text multiplies its CRC by x^(8n) mod P. Polynomials are written as in zlib:
bit 31 is the coefficient of x^0.
"""

import zlib

try:
    from isal import isal_zlib as _library
except ImportError:  # the extra `fast` installs it
    import zlib as _library  # type: ignore[no-redef]

_LEVEL = 1
"""The fastest level. Metrics are so repetitive that higher levels gain little."""


checksum = _library.crc32


def deflated(text: bytes, *, last: bool = False) -> bytes:
    """Return raw deflate data of a part; only the last part ends the stream."""
    stream = _library.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    end = zlib.Z_FINISH if last else zlib.Z_FULL_FLUSH
    return stream.compress(text) + stream.flush(end)


_P = 0xEDB88320
_ONE = 0x80000000


def _multiply(a: int, b: int) -> int:
    product = 0
    while a:
        if a & _ONE:
            product ^= b
        a = (a << 1) & 0xFFFFFFFF
        b = (b >> 1) ^ (_P if b & 1 else 0)
    return product


def _powers() -> tuple[int, ...]:
    powers = [0x00800000]  # x^8: one byte
    for _ in range(47):
        powers.append(_multiply(powers[-1], powers[-1]))
    return tuple(powers)


_BYTE_POWERS = _powers()
"""x^(8 * 2^k) mod P for each k, enough for 256 TiB."""


def shift(length: int) -> int:
    """Return the polynomial by which `length` appended bytes multiply a CRC."""
    result = _ONE
    power = 0
    while length:
        if length & 1:
            result = _multiply(result, _BYTE_POWERS[power])
        length >>= 1
        power += 1
    return result


def combine(first: int, second: int, second_shift: int) -> int:
    """Return the CRC-32 of two joined texts; `second_shift` is `shift(len(second))`."""
    return _multiply(first, second_shift) ^ second

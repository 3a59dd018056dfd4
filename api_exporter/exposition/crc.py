"""The CRC-32 of a concatenation from the CRC-32s of its parts, without reading them.

zlib has this as `crc32_combine`; Python's binding leaves it out. A CRC is a polynomial
over GF(2) modulo P; putting n bytes behind a text multiplies its CRC by x^(8n) mod P.
Polynomials are written as zlib writes them: bit 31 is the coefficient of x^0.
"""

_P = 0xEDB88320
_ONE = 0x80000000


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials modulo P."""
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


_BYTES = _powers()
"""x^(8 * 2^k) mod P for each k: enough for 256 TiB."""


def shift(length: int) -> int:
    """The polynomial that a CRC is multiplied by when `length` bytes follow."""
    result = _ONE
    power = 0
    while length:
        if length & 1:
            result = _multiply(result, _BYTES[power])
        length >>= 1
        power += 1
    return result


def combine(first: int, second: int, second_shift: int) -> int:
    """The CRC-32 of two texts in a row; `second_shift` is `shift(len(second text))`."""
    return _multiply(first, second_shift) ^ second

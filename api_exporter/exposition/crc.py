"""The CRC-32 of a concatenation, computed from the CRC-32s of its parts.

zlib has this function as `crc32_combine`; Python's binding lacks it. A CRC is a
polynomial over GF(2) modulo P. Appending n bytes to a text multiplies its CRC by x^(8n)
mod P. Polynomials are written as in zlib: bit 31 is the coefficient of x^0.
"""

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

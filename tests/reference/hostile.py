"""Bodies with hostile changes; some of them no server sends."""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy

from hypothesis import strategies as st

Place = tuple[dict[str, object] | list[object], str | int]
"""The position of a value: a container, and a key or an index."""

_NOT_UTF8 = {"\ue000": b"\xff", "\ue001": b"\xed\xa0\x80"}
"""Characters that `encode` replaces by bytes that are not UTF-8."""

_WORDS = (
    *("", " ", "a", "A", 'quote " backslash \\ line\nbreak\r\ttab \\n', "{}=,#"),
    *("\x00\x1f\x7f\x85\u2028", "\ud800", "\udc00x\ud800", "x\ue000", "x\ue001"),
    *("𐀀é漢", "…", "x" * 4096, "x" * 4097, "x" * 4098, "é" * 2049 + '"', "漢" * 1400),
    *("𐀀" * 1025 + "\\", "2", "Debian GNU/Linux 12", "Foo  Bar\u00a03", "²", "v1.2.3"),
    *("0.31.0", "00.074.1", "1.2.3-rc1", "1.2." + "9" * 5000, "10.0.0.0/8"),
    *("10.0.0.0/31", "10.0.0.1/33", "fd00::/64", "0.0.0.0/0", "::/0", "<nil>", "http"),
    *("custom", "Custom", "Domain", "unknown", "true", "valid", "overused", "active"),
    *("future",),
)

TIMES = (
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+02:00", "0000-12-31T19:00:00-05:00"),
    *("1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z"),
    *("1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00.5Z", "1970-01-01T00:00:01Z"),
    *("2026-02-28t23:59:59.123456789-11:30", "2026-11-22T12:00:00.0000004z"),
    *("2026-11-22 12:00:00Z", "2038-01-19T03:14:08Z", "9999-12-31T23:59:59-23:59"),
    *("9999-12-31T23:59:59Z", "2026-11-22T12:00:00", "2026-11-22"),
    *("2026-02-30T00:00:00Z", "2026-11-22T12:00:60Z"),
)

_NUMBERS = (0, 1, 2, -1, 3600, 2**31, 2**53, -(2**53), 2**53 + 1, 10**30)

_OTHERS: tuple[object, ...] = (
    *(None, True, False, 0, 1.5, -1.0, "text", [], {}, [None], [[]], {"id": None}),
)

_BODIES: tuple[object, ...] = (None, [], {}, [None], ["text"], [{}], "text", 0)


def places(value: object) -> Iterator[Place]:
    """Yield all positions in a body."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from places(inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value, index
            yield from places(inner)


def words(parsed: Mapping[str, object]) -> list[str]:
    """Return hostile strings, and all strings of bodies, which may be references."""
    found = {
        value
        for body in parsed.values()
        for inner, key in places([body])
        if isinstance(value := inner[key], str)  # type: ignore[index]
    }
    return [*_WORDS, *TIMES, *sorted(found)]


def changed(parsed: Mapping[str, object]) -> st.SearchStrategy[dict[str, bytes]]:
    """Return a strategy of changed bodies."""
    strings = words(parsed)

    @st.composite
    def change(draw: st.DrawFn) -> dict[str, bytes]:
        bodies = deepcopy(dict(parsed))
        for _ in range(draw(st.integers(1, 12))):
            resource = draw(st.sampled_from(sorted(parsed)))
            match draw(st.integers(0, 40)):
                case 0:
                    bodies.pop(resource, None)
                case 1:
                    bodies[resource] = deepcopy(draw(st.sampled_from(_BODIES)))
                case _:
                    _change(draw, bodies.get(resource), strings)
        return {name: encode(body) for name, body in bodies.items()}

    return change()


def encode(body: object) -> bytes:
    raw = json.dumps(body).encode()
    for character, wrong in _NOT_UTF8.items():
        raw = raw.replace(json.dumps(character)[1:-1].encode(), wrong)
    return raw


def _change(draw: st.DrawFn, body: object, strings: list[str]) -> None:
    there = list(places(body))
    if not there:
        return
    container, key = draw(st.sampled_from(there))
    if isinstance(container, list):
        assert isinstance(key, int)
        value = container[key]
        match draw(st.integers(0, 3)):
            case 0:
                container.append(deepcopy(value))
                return
            case 1:
                container.insert(0, deepcopy(value))
                return
            case 2:
                del container[key]
                return
        container[key] = draw(_replacement(value, strings))
        return
    assert isinstance(key, str)
    if draw(st.integers(0, 9)) == 0:
        del container[key]
    else:
        container[key] = draw(_replacement(container[key], strings))


def _replacement(value: object, strings: list[str]) -> st.SearchStrategy[object]:
    """Return a strategy of replacements, mostly of the same type."""
    others = st.sampled_from(_OTHERS).map(deepcopy)
    same: st.SearchStrategy[object] = others
    if isinstance(value, bool):
        same = st.booleans()
    elif isinstance(value, int):
        same = st.sampled_from(_NUMBERS)
    elif isinstance(value, str):
        same = st.sampled_from(TIMES if "T00:" in value else strings)
    return st.integers(0, 5).flatmap(lambda which: same if which else others)

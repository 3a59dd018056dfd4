"""How long the newest calls took, as a strip of bars beside their table."""

from collections.abc import Sequence

from twisted.web.template import Tag, tags

from api_exporter.ports import Attempt
from api_exporter.web.status import words

BAR, HEIGHT = 12, 48


def strip(recent: Sequence[Attempt]) -> Tag:
    """A bar for each call, the newest on the right; at least one.

    The table has the same numbers, so that nobody needs to see it.
    """
    longest = max(recent, key=lambda attempt: attempt.seconds)
    top = max(longest.seconds, 0.001)
    bars = []
    for place, attempt in enumerate(recent):
        height = max(1.0, HEIGHT * (attempt.seconds / top))
        bars.append(
            Tag(
                "rect",
                attributes={
                    "class": "bad" if attempt.error else "good",
                    "x": str(BAR * place + 1),
                    "y": f"{HEIGHT - height:.1f}",
                    "width": str(BAR - 2),
                    "height": f"{height:.1f}",
                },
            )(
                Tag("title")(
                    f"/{attempt.path}: {words.milliseconds(attempt.seconds)} ms"
                )
            )
        )
    width = BAR * len(recent)
    told = f"{words.milliseconds(longest.seconds)} ms for /{longest.path}"
    return tags.figure(
        Tag(
            "svg",
            attributes={
                "viewBox": f"0 0 {width} {HEIGHT}",
                "width": str(width),
                "height": str(HEIGHT),
                "role": "img",
                "aria-label": f"Durations of the newest {len(recent)} calls, the newest"
                f" on the right; the longest: {told}",
            },
        )(*bars),
        tags.figcaption(f"Durations, the newest on the right; the longest: {told}."),
        class_="strip",
    )

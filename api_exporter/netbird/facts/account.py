"""The yes-or-no settings of an account."""

from collections.abc import Iterator

from msgspec.structs import fields

from api_exporter.netbird.records import (
    Choice,
    ExtraSettings,
    NetBirdAccount,
    NetBirdSettings,
)


def choices(account: NetBirdAccount) -> Iterator[tuple[str, bool]]:
    """Yield the yes-or-no settings of an account that the response has."""
    for prefix, part in (("", account.settings), ("extra.", account.settings.extra)):
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, bool):
                yield prefix + field.name, value


CHOICES = tuple(
    prefix + field.name
    for prefix, part in (("", NetBirdSettings), ("extra.", ExtraSettings))
    for field in fields(part)
    if field.type == Choice
)

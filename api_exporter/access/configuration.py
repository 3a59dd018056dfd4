"""The configuration of access control: what its settings and files say now."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from twisted.logger import Logger

from api_exporter.access.bearer_tokens import BearerTokens
from api_exporter.access.client_certificates import ClientCertificates
from api_exporter.access.open_paths import OpenPaths
from api_exporter.access.passwords import Passwords
from api_exporter.access.reloading import Read
from api_exporter.access.ways_in import Compare, Sources, WayIn
from api_exporter.settings.addresses import Endpoint
from api_exporter.settings.definitions import Settings
from api_exporter.settings.errors import ConfigurationError

if TYPE_CHECKING:  # imported below, by those who pay for it
    from api_exporter.access.web_config import WebConfig

_log = Logger()

WEB = "WEB_CONFIG_FILE"

WAYS: tuple[type[WayIn], ...] = (
    ClientCertificates,
    Passwords,
    BearerTokens,
    OpenPaths,
)
"""All that there are, in the order in which they are described."""


class AccessControl:
    """All that decides who may come in.

    Attributes:
        web: the web configuration, if there is any.
        ways: those that are wanted.
        metrics_path: where the metrics are.
    """

    def __init__(self, sources: Sources, ways: Sequence[WayIn]) -> None:
        self.web = sources.web
        self.ways = ways
        self.metrics_path = sources.settings.metrics_path
        self._files = sources.files

    @property
    def good(self) -> bool:
        """Whether all files were good when they were last looked at."""
        return all(file.good for file in self._files)

    @property
    def encrypted(self) -> bool:
        """Whether there is TLS; that does not change."""
        return self.web is not None and self.web.value.context is not None

    @property
    def protected(self) -> bool:
        """Whether strangers are kept out."""
        return any(way.asks for way in self.ways)

    def describe(self) -> list[str]:
        """How somebody comes in, a line each."""
        lines = [
            line
            for way in self.ways
            if (self.protected or not isinstance(way, OpenPaths))
            and (line := way.describe())
        ]
        nobody = "nobody is asked who it is; whoever reaches it reads it"
        return lines if self.protected else [*lines, nobody]

    def reload(self) -> None:
        """Look at all files."""
        for file in self._files:
            file.reload()


def load(
    settings: Settings, seconds: Callable[[], float], compare: Compare
) -> AccessControl | None:
    """What the settings want, None for nothing; raises ConfigurationError.

    Args:
        compare: compares a password with a hash.
    """
    sources = Sources(settings, seconds, compare)
    if settings.web_config_file is not None and any(
        isinstance(address, Endpoint) and address.startswith("ssl:")
        for address in settings.listen_address
    ):
        both = f"{WEB} and an ssl: endpoint in LISTEN_ADDRESS are both set"
        sources.errors.append(ConfigurationError(f"{both}: only one of them may be"))
    sources.web = sources.follow(WEB, settings.web_config_file, _load_web)
    ways = [way for kind in WAYS if (way := kind.configured(sources)) is not None]
    if errors := sources.errors:
        raise ConfigurationError(
            *(problem for error in errors for problem in error.problems),
            retryable=all(error.retryable for error in errors),
        )
    return AccessControl(sources, ways) if sources.files else None


def _load_web(path: Path, read: Read, before: "WebConfig | None") -> "WebConfig":
    # YAML and OpenSSL are for those who want them.
    from api_exporter.access import web_config  # noqa: PLC0415

    config = web_config.load(path, read)
    if config.tls is not None:
        from api_exporter.access.tls_context import make_context  # noqa: PLC0415

        config = replace(config, context=make_context(config.tls))
    if before is not None:
        if problems := web_config.restarts(before, config):
            raise ConfigurationError(*(f"{path}: {problem}" for problem in problems))
        if before.limit == config.limit:
            config = replace(config, bucket=before.bucket)
    for warning in config.warnings:
        _log.warn("{setting}: {warning}", setting=WEB, warning=warning)
    return config

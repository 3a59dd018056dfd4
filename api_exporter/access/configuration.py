"""The configuration of access control from its settings and files."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace
from twisted.logger import Logger

from api_exporter.access.bearer_tokens import BearerTokens, load_tokens
from api_exporter.access.methods import (
    AuthenticationMethod,
    ClientCertificates,
    Compare,
    OpenPaths,
)
from api_exporter.access.passwords import Passwords
from api_exporter.access.reloading import ReadFile, Reloader
from api_exporter.settings.addresses import Endpoint
from api_exporter.settings.definitions import Settings
from api_exporter.settings.errors import ConfigurationError

if TYPE_CHECKING:  # imported below, only if it is configured
    from api_exporter.access.web_config import WebConfig

T = TypeVar("T")

_log = Logger()

WEB_SETTING = "WEB_CONFIG_FILE"


class AccessControl:
    """Access control as the settings configure it.

    Attributes:
        web: the web configuration; None without a valid file.
        methods: the authentication methods in use, in the order of their description.
    """

    def __init__(
        self, settings: Settings, seconds: Callable[[], float], compare: Compare
    ) -> None:
        self.metrics_path = settings.metrics_path
        self._seconds = seconds
        self.files: list[Reloader[Any]] = []
        self.errors: list[ConfigurationError] = []
        self.methods: list[AuthenticationMethod] = []
        self.web = self._follow(WEB_SETTING, settings.web_config_file, _load_web)
        if self.web is not None:
            self.methods += [ClientCertificates(self.web), Passwords(self.web, compare)]
        load_file = partial(load_tokens, named_accounts=settings.has_names)
        tokens = self._follow(
            "WEB_BEARER_TOKENS_FILE", settings.web_bearer_tokens_file, load_file
        )
        if tokens is not None:
            self.methods.append(BearerTokens(tokens))
        try:
            open_paths = OpenPaths(settings.web_open_paths, self.metrics_path)
        except ConfigurationError as error:
            self.errors.append(error)
        else:
            if self.methods:  # without another method all paths are open
                self.methods.append(open_paths)

    def _follow(
        self,
        setting: str,
        path: Path | None,
        load: Callable[[Path, ReadFile, T | None], T],
    ) -> Reloader[T] | None:
        """Return a reloader of a setting's file; None if it is not set or not valid."""
        if path is None:
            return None
        report = partial(_log_reload, setting)
        try:
            reloader = Reloader(partial(load, path), self._seconds, report)
        except ConfigurationError as error:
            problems = [f"{setting}: {problem}" for problem in error.problems]
            self.errors.append(ConfigurationError(*problems, retryable=error.retryable))
            return None
        self.files.append(reloader)
        return reloader

    @property
    def is_valid(self) -> bool:
        """True if all files were valid at their last reload."""
        return all(file.is_valid for file in self.files)

    @property
    def encrypted(self) -> bool:
        """True if connections use TLS; a reload does not change it."""
        return self.web is not None and self.web.value.context is not None

    @property
    def protected(self) -> bool:
        """True if requests without valid credentials are refused."""
        return any(method.is_required for method in self.methods)

    def describe(self) -> list[str]:
        """Describe each authentication method in a line; warn if there is none."""
        lines = [
            line
            for method in self.methods
            if (self.protected or not isinstance(method, OpenPaths))
            and (line := method.describe())
        ]
        warning = "no authentication: anyone who can connect can read all pages"
        return lines if self.protected else [*lines, warning]

    def reload(self) -> None:
        for file in self.files:
            file.reload()


def load(
    settings: Settings, seconds: Callable[[], float], compare: Compare
) -> AccessControl | None:
    """Return access control, None without files; raise ConfigurationError."""
    errors = []
    if settings.web_config_file is not None and any(
        isinstance(address, Endpoint) and address.startswith("ssl:")
        for address in settings.listen_address
    ):
        conflict = f"{WEB_SETTING} and an ssl: endpoint in LISTEN_ADDRESS are both set"
        errors.append(ConfigurationError(f"{conflict}: set only one of them"))
    access = AccessControl(settings, seconds, compare)
    if errors := errors + access.errors:
        raise ConfigurationError(
            *(problem for error in errors for problem in error.problems),
            retryable=all(error.retryable for error in errors),
        )
    return access if access.methods else None


def _log_reload(setting: str, error: ConfigurationError | None) -> None:
    if error is None:
        _log.info("{setting}: reloaded", setting=setting)
        return
    _log.error(
        "{setting}: {error}; the previous configuration stays in use",
        setting=setting,
        error="; ".join(error.problems),
    )


def _load_web(path: Path, read: ReadFile, before: "WebConfig | None") -> "WebConfig":
    # YAML and OpenSSL are imported only if they are configured.
    from api_exporter.access import web_config  # noqa: PLC0415

    config = web_config.load(path, read)
    if config.tls is not None:
        from api_exporter.access.tls_context import make_context  # noqa: PLC0415

        config = replace(config, context=make_context(config.tls))
    if before is not None:
        if problems := web_config.changes_needing_restart(before, config):
            raise ConfigurationError(*(f"{path}: {problem}" for problem in problems))
        if before.limit == config.limit:
            config = replace(config, bucket=before.bucket)
    for warning in config.warnings:
        _log.warn("{setting}: {text}", setting=WEB_SETTING, text=warning)
    return config

"""What stands at the front door, as its files say now."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from twisted.internet.interfaces import IProtocolFactory
from twisted.logger import Logger

from api_exporter.door import names
from api_exporter.door.limiter import Limiter
from api_exporter.door.live import Live, Read
from api_exporter.door.rules import Rules, rules
from api_exporter.door.tokens import Tokens, tokens
from api_exporter.serving.authorization import ALL
from api_exporter.settings.addresses import Endpoint
from api_exporter.settings.definitions import Settings
from api_exporter.settings.errors import ConfigurationError

if TYPE_CHECKING:  # imported below, by those who pay for it
    from OpenSSL import SSL

    from api_exporter.door.tls import Tls
    from api_exporter.door.webconfig import WebConfig

_log = Logger()

WEB, TOKENS = "WEB_CONFIG_FILE", "WEB_BEARER_TOKENS_FILE"


class Web(Struct, frozen=True):
    """The web configuration and what is made of it."""

    config: "WebConfig"
    context: "SSL.Context | None"
    limiter: Limiter | None


class Front:
    """All that decides who may come in.

    Attributes:
        web: the web configuration, if there is any.
        tokens: the bearer tokens, if there are any.
        rules: who may see what.
    """

    def __init__(
        self, web: Live[Web] | None, tokens: Live[Tokens] | None, rules: Rules
    ) -> None:
        self.web = web
        self.tokens = tokens
        self.rules = rules

    @property
    def fine(self) -> bool:
        """Whether all files were good when they were last looked at."""
        return all(live.fine for live in (self.web, self.tokens) if live is not None)

    @property
    def encrypted(self) -> bool:
        """Whether there is TLS; that does not change."""
        return self.web is not None and self.web.value.context is not None

    @property
    def guarded(self) -> bool:
        """Whether strangers are kept out."""
        if self.tokens is not None or self.web is None:
            return self.tokens is not None
        config = self.web.value.config
        return bool(config.users or (config.tls is not None and config.tls.required))

    def doors(self) -> list[str]:
        """How somebody comes in, in words."""
        found = []
        if self.web is not None:
            config = self.web.value.config
            if config.tls is not None:
                found.append(f"TLS, {names.VERIFIED[config.tls.client_auth]}")
            if config.users:
                found.append(f"passwords of {len(config.users)} users")
        if self.tokens is not None:
            known = self.tokens.value.known
            limited = sum(c.accounts is not ALL for _, c in known)
            found.append(f"{len(known)} tokens, {limited} limited to some accounts")
        if not self.guarded:
            found.append("nobody is asked who it is; whoever reaches it reads it")
        elif self.rules.open_paths:
            found.append(f"open to all: {', '.join(sorted(self.rules.open_paths))}")
        return found

    def look(self) -> None:
        """Look at all files."""
        for live in (self.web, self.tokens):
            if live is not None:
                live.look()

    def secured(
        self, factory: IProtocolFactory, refused: Callable[[str, str], None]
    ) -> IProtocolFactory:
        """The same behind TLS, for connections as they are wanted when they begin.

        Args:
            refused: told of an address whose certificate is not taken, and why.
        """
        from api_exporter.door.secured import secured  # noqa: PLC0415

        def context() -> "SSL.Context":
            assert self.web is not None
            now = self.web().context
            assert now is not None
            return now

        return secured(factory, context, refused)


def opened(settings: Settings, seconds: Callable[[], float]) -> Front | None:
    """What the settings ask for, None for nothing; raises ConfigurationError."""
    errors: list[ConfigurationError] = []
    web, bearer, ruled, path = None, None, None, settings.web_config_file
    if path is not None:
        if any(
            isinstance(address, Endpoint) and address.startswith("ssl:")
            for address in settings.listen_address
        ):
            both = f"{WEB} and an ssl: endpoint in LISTEN_ADDRESS are both set"
            errors.append(ConfigurationError(f"{both}: only one of them may be"))
        try:
            web = Live(partial(_web, path), seconds, partial(_told, WEB))
        except ConfigurationError as error:
            errors.append(_named(WEB, error))
    if (file := settings.web_bearer_tokens_file) is not None:
        try:
            bearer = Live(
                partial(_tokens, file, settings.several),
                seconds,
                partial(_told, TOKENS),
            )
        except ConfigurationError as error:
            errors.append(_named(TOKENS, error))
    try:
        ruled = rules(settings.metrics_path, settings.web_open_paths)
    except ValueError as error:
        errors.append(ConfigurationError(f"WEB_OPEN_PATHS: {error}"))
    if errors or ruled is None:
        problems = [problem for error in errors for problem in error.problems]
        raise ConfigurationError(
            *problems, retryable=all(error.retryable for error in errors)
        )
    return None if web is None and bearer is None else Front(web, bearer, ruled)


def _named(setting: str, error: ConfigurationError) -> ConfigurationError:
    problems = [f"{setting}: {problem}" for problem in error.problems]
    return ConfigurationError(*problems, retryable=error.retryable)


def _told(setting: str, error: ConfigurationError | None) -> None:
    if error is None:
        _log.info("{setting}: it has changed, and is in force", setting=setting)
        return
    _log.error(
        "{setting}: {why}; what was in force before stays",
        setting=setting,
        why="; ".join(error.problems),
    )


def _tokens(path: Path, several: bool, read: Read, _before: Tokens | None) -> Tokens:
    return tokens(path, read, several=several)


def _web(path: Path, read: Read, before: Web | None) -> Web:
    # YAML and OpenSSL are for those who want them.
    from api_exporter.door.webconfig import web_config  # noqa: PLC0415

    config = web_config(path, read)
    context = None
    if config.tls is not None:
        from api_exporter.door.context import context as made  # noqa: PLC0415

        context = made(config.tls)
    limiter = None if config.limit is None else Limiter(*config.limit)
    if before is not None:
        if problems := [f"{path}: {p}" for p in _too_late(before.config, config)]:
            raise ConfigurationError(*problems)
        if before.config.limit == config.limit:
            limiter = before.limiter
    for warning in config.warnings:
        _log.warn("{setting}: {warning}", setting=WEB, warning=warning)
    return Web(config, context, limiter)


_CERTIFICATE_CHECKS: tuple[tuple[str, str, "Callable[[Tls], bool]"], ...] = (
    ("client_auth_type", "no certificate is required", lambda tls: tls.required),
    ("client_auth_type", "no certificate is verified", lambda tls: tls.verified),
    (
        "client_ca_file",
        "no authority is named",
        lambda tls: tls.verified and tls.client_ca is not None,
    ),
    ("client_allowed_sans", "no name is required", lambda tls: bool(tls.allowed_sans)),
)
"""What a client's certificate has to be: key, what it is without it, whether it is."""


def _too_late(before: "WebConfig", now: "WebConfig") -> list[str]:
    """What takes a restart.

    An editor that has not written all of the file yet must not open the door.
    """
    problems = []
    if (before.tls is None) != (now.tls is None):
        problems.append(
            "tls_server_config: whether there is TLS cannot change while running:"
            " restart"
        )
    elif before.tls is not None and now.tls is not None:
        problems += [
            f"tls_server_config.{key}: that {words} any more takes a restart"
            for key, words, checks in _CERTIFICATE_CHECKS
            if checks(before.tls) and not checks(now.tls)
        ]
    if before.users and not now.users:
        problems.append(
            "basic_auth_users: that nobody is asked for a password any more takes a"
            " restart"
        )
    return problems

"""Access control: its files, and the authentication of a client."""

import base64
import binascii
from collections.abc import Callable, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace
from twisted.logger import Logger
from twisted.web.server import Request

from api_exporter.access.bearer_tokens import Tokens, load_tokens
from api_exporter.access.passwords import Compare, Passwords
from api_exporter.access.reloading import ReadFile, Reloader
from api_exporter.formatting import with_noun
from api_exporter.ports import ALL_ACCOUNTS, Accounts, Now
from api_exporter.settings.addresses import EndpointDescription
from api_exporter.settings.definitions import Settings
from api_exporter.settings.errors import ConfigurationError, quote_value

if TYPE_CHECKING:  # imported below, only if it is configured
    from api_exporter.access.web_config import TlsConfig, WebConfig

T = TypeVar("T")

_log = Logger()

WEB_SETTING = "WEB_CONFIG_FILE"

MAX_USUAL_COST = 14
"""The maximum cost of a hash without a warning; above it a comparison takes seconds."""

_INCLUDED = {"/sd": {"/sd/accounts"}, "/lookup": {"/lookup.csv", "/lookup.json"}}
"""Open paths besides that of the metrics, and those that they include."""


class AccessControl:
    """Access control as the settings configure it."""

    def __init__(
        self,
        settings: Settings,
        seconds: Callable[[], float],
        now: Now,
        compare: Compare,
    ) -> None:
        self.metrics_path = settings.metrics_path
        self._seconds, self._now = seconds, now
        self._passwords = Passwords(compare)
        self.files: list[Reloader[Any]] = []
        self.errors: list[ConfigurationError] = []
        self.web = self._follow(WEB_SETTING, settings.web_config_file, _load_web)
        load_file = partial(load_tokens, named_accounts=settings.has_named_accounts)
        self._tokens = self._follow(
            "WEB_BEARER_TOKENS_FILE", settings.web_bearer_tokens_file, load_file
        )
        self.open_paths = self._open(settings.web_open_paths)

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
            reloader = Reloader(partial(load, path), self._seconds, self._now, report)
        except ConfigurationError as error:
            problems = [f"{setting}: {problem}" for problem in error.problems]
            self.errors.append(ConfigurationError(*problems, retryable=error.retryable))
            return None
        self.files.append(reloader)
        return reloader

    def _open(self, paths: Set[str]) -> frozenset[str]:
        for path in sorted(paths - {self.metrics_path, *_INCLUDED}):
            problem = (
                f"WEB_OPEN_PATHS: {quote_value(path)} is not allowed: it must be"
                f" {self.metrics_path}, /sd or /lookup"
            )
            self.errors.append(ConfigurationError(problem))
        included = (more for path, more in _INCLUDED.items() if path in paths)
        return frozenset(paths).union(*included)

    @property
    def is_valid(self) -> bool:
        """True if all files were valid at their last reload."""
        return all(file.is_valid for file in self.files)

    @property
    def loaded_at(self) -> float:
        """Time of the newest successful load of a file, in seconds since 1970."""
        return max(file.loaded_at for file in self.files)

    @property
    def tls(self) -> "TlsConfig | None":
        """The TLS settings; None if connections are plain, which no reload changes."""
        return None if self.web is None else self.web.value.tls

    @property
    def challenges(self) -> list[bytes]:
        """The schemes that a 401 offers (RFC 9110, 11.6.1); empty if none is needed."""
        offered = []
        if self.web is not None and self.web().users:
            offered.append(b'Basic realm="api-exporter", charset="UTF-8"')
        if self._tokens is not None:
            offered.append(b'Bearer realm="api-exporter"')
        return offered

    @property
    def protected(self) -> bool:
        """True if clients without valid credentials or certificates are refused."""
        tls = self.tls
        return bool(self.challenges) or (tls is not None and tls.requires_certificates)

    async def authenticate(
        self, request: Request, *, may_wait: bool
    ) -> Accounts | None:
        """Return the accounts, None without valid credentials; raise QueueFull."""
        values = request.requestHeaders.getRawHeaders(b"authorization", [])
        if len(values) != 1:
            return None
        scheme, _, value = values[0].strip().partition(b" ")
        if scheme.lower() == b"bearer" and self._tokens is not None:
            tokens: Tokens = self._tokens()
            return tokens.authenticate(value.strip())
        users = {} if self.web is None else self.web().users
        if scheme.lower() == b"basic" and users:
            try:
                decoded = base64.b64decode(value.strip(), validate=True)
            except binascii.Error:
                return None
            user, colon, password = decoded.partition(b":")
            if colon and await self._passwords.check(
                users, user, password, may_wait=may_wait
            ):
                return ALL_ACCOUNTS
        return None

    def describe(self) -> list[str]:
        """Describe each authentication method in a line; warn if there is none."""
        lines = []
        if (tls := self.tls) is not None:
            lines.append(f"TLS, {tls.description}")
        if self.web is not None and (users := self.web.value.users):
            lines.append(f"passwords of {with_noun(len(users), 'user')}")
        if self._tokens is not None:
            lines.append(self._tokens.value.describe())
        if not self.protected:
            lines.append("no authentication: anyone who can connect can read all pages")
        elif self.open_paths:
            paths = ", ".join(sorted(self.open_paths))
            lines.append(f"no password or token required: {paths}")
        return lines

    def reload(self) -> None:
        for file in self.files:
            file.reload()


def load(
    settings: Settings, seconds: Callable[[], float], now: Now, compare: Compare
) -> AccessControl | None:
    """Return access control, None without files; raise ConfigurationError."""
    access = AccessControl(settings, seconds, now, compare)
    errors = access.errors
    if settings.web_config_file is not None and any(
        isinstance(address, EndpointDescription) and address.startswith("ssl:")
        for address in settings.listen_address
    ):
        conflict = f"{WEB_SETTING} and an ssl: endpoint in LISTEN_ADDRESS are both set"
        errors.insert(0, ConfigurationError(f"{conflict}: set only one of them"))
    if errors:
        raise ConfigurationError.joined(errors)
    return access if access.files else None


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
        from api_exporter.access.tls import make_context  # noqa: PLC0415

        config = replace(config, context=make_context(config.tls, path, read))
    if before is not None and (
        problems := web_config.changes_needing_restart(before, config)
    ):
        raise ConfigurationError(*(f"{path}: {problem}" for problem in problems))
    cost = max((int(digest[4:6]) for digest in config.users.values()), default=0)
    if cost > MAX_USUAL_COST:
        text = (
            f"{path}: basic_auth_users: a hash has cost {cost}. One comparison takes"
            f" about {2**cost // 10_000} seconds and delays all others. Use a cost from"
            " 10 to 12"
        )
        _log.warn("{setting}: {text}", setting=WEB_SETTING, text=text)
    return config

"""A strict reader of YAML documents: each error has its line."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from api_exporter.settings.errors import ConfigurationError, mask_secrets, quote_value

T = TypeVar("T")

_BOOLEANS = ("true", "yes", "on", "false", "no", "off")


class YamlDocument:
    """A document and its errors.

    A key without a value counts as missing, as in Go.

    Attributes:
        root: None for an empty document.
        problems: the errors found so far; none repeats a value.
        retryable: True if a retry may succeed: no error is in the document itself.
    """

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self.problems: list[str] = []
        self.retryable = True
        try:
            self.root: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            message = re.sub(r"'[^']{4,}'", "…", error.problem or "no YAML")
            raise ConfigurationError(f"{name}:{line}: {message}") from None
        except (yaml.YAMLError, RecursionError) as error:
            message = "the file contains a character that YAML forbids"
            if isinstance(error, RecursionError):
                message = "the file is nested too deeply"
            raise ConfigurationError(f"{name}: {message}") from None

    def place(self, node: Node) -> str:
        return f"{self._name}:{node.start_mark.line + 1}"

    def reject(self, node: Node, key: str, message: str) -> None:
        self.retryable = False
        self.problems.append(f"{self.place(node)}: {key}: {message}")

    def entries(self, node: Node | None, key: str) -> Iterator[tuple[str, Node]]:
        """Yield the names and values of a mapping, each name once."""
        if node is None or _is_null(node):
            return
        if not isinstance(node, MappingNode):
            message = "it must be a mapping of keys to values"
            self.reject(node, key or "the file", message)
            return
        seen: set[str] = set()
        for name, value in node.value:
            if not isinstance(name, ScalarNode):
                self.reject(name, key or "the file", "a key must be a word")
            elif name.value in seen:
                self.reject(name, join(key, name.value), "the key occurs twice")
            else:
                seen.add(name.value)
                yield name.value, value

    def text(self, node: Node, key: str) -> str:
        """Return a scalar as text; "" for other nodes."""
        if isinstance(node, ScalarNode):
            return str(node.value)
        self.reject(node, key, "it must be a text")
        return ""


class Section:
    """A mapping with known keys.

    Args:
        key: its full name; "" for the document.
        text_keys: keys for which an empty text counts as missing.

    Attributes:
        found: the values of keys that are not missing.
    """

    def __init__(
        self,
        document: YamlDocument,
        node: Node | None,
        key: str,
        allowed: Collection[str],
        text_keys: Collection[str] = (),
    ) -> None:
        self.document = document
        self.key = key
        self.node = node
        self.found: dict[str, Node] = {}
        for name, value in document.entries(node, key):
            if name not in allowed:
                message = f"no such key: allowed are {', '.join(allowed)}"
                document.reject(value, join(key, name), message)
            elif not (_is_null(value) or (name in text_keys and value.value == "")):
                self.found[name] = value

    def section(
        self, name: str, allowed: Collection[str], text_keys: Collection[str] = ()
    ) -> "Section":
        found, key = self.found.get(name), join(self.key, name)
        return Section(self.document, found, key, allowed, text_keys)

    def reject(self, name: str, message: str) -> None:
        self.document.reject(self.found[name], join(self.key, name), message)

    def text(self, name: str) -> str:
        """Return the text of a key; "" if it is missing."""
        node = self.found.get(name)
        return "" if node is None else self.document.text(node, join(self.key, name))

    def check_boolean(self, name: str) -> None:
        if name in self.found and self.text(name).lower() not in _BOOLEANS:
            self.reject(name, "it must be true or false")

    def one_of(self, name: str, allowed: Mapping[str, T], default: T) -> T:
        """Return the value of `allowed` for a key's text; the default without it."""
        if name not in self.found:
            return default
        text = self.text(name)
        if text not in allowed:
            self.reject(name, f"it must be {_not_one_of(allowed, text)}")
        return allowed.get(text, default)

    def texts(self, name: str, allowed: Collection[str] | None = None) -> list[str]:
        node, key = self.found.get(name), join(self.key, name)
        if node is None:
            return []
        if not isinstance(node, SequenceNode):
            self.reject(name, "it must be a list")
            return []
        found = []
        for item in node.value:
            found.append(text := self.document.text(item, key))
            if allowed is not None and text not in allowed:
                message = f"each must be {_not_one_of(allowed, text)}"
                self.document.reject(item, key, message)
        return found


def join(section: str, name: str) -> str:
    """Return the full name of a key, masked unless it is a word: it may be a secret."""
    key = (
        mask_secrets(name)
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,40}", name)
        else "…"
    )
    return f"{section}.{key}" if section else key


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _not_one_of(allowed: Collection[str], text: str) -> str:
    return f"one of {', '.join(allowed)}, not {quote_value(text, allowed)}"

"""A YAML document, read strictly: each mistake is told with its line."""

import re
from collections.abc import Iterator

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from api_exporter.settings.errors import ConfigurationError

_TRUTHS = {"true": True, "yes": True, "on": True}
_TRUTHS |= {"false": False, "no": False, "off": False}


class Document:
    """Values of one document, and what is wrong with them.

    A key that is there without a value counts as not there, as in Go.

    Attributes:
        problems: mistakes that were found so far; none repeats a value.
        retryable: whether waiting may mend them: none is of the document itself.
    """

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self.problems: list[str] = []
        self.retryable = True
        try:
            self.root: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            words = re.sub(r"'[^']{4,}'", "…", error.problem or "no YAML")
            raise ConfigurationError(f"{name}:{line}: {words}") from None
        except yaml.YAMLError:
            raise ConfigurationError(
                f"{name}: it holds a character that YAML forbids"
            ) from None
        except RecursionError:
            raise ConfigurationError(f"{name}: it is nested too deeply") from None

    def place(self, node: Node) -> str:
        """File and line of a value."""
        return f"{self._name}:{node.start_mark.line + 1}"

    def wrong(self, node: Node, key: str, words: str) -> None:
        """One mistake more."""
        self.retryable = False
        self.problems.append(f"{self.place(node)}: {key}: {words}")

    def entries(self, node: Node | None, key: str) -> Iterator[tuple[str, Node]]:
        """Names and values of a mapping, each name once."""
        if node is None or _absent(node):
            return
        if not isinstance(node, MappingNode):
            self.wrong(
                node, key or "the file", "it must be a mapping of keys to values"
            )
            return
        seen: set[str] = set()
        for name, value in node.value:
            if not isinstance(name, ScalarNode):
                self.wrong(name, key or "the file", "a key must be a word")
            elif name.value in seen:
                self.wrong(name, joined(key, name.value), "it is there twice")
            else:
                seen.add(name.value)
                yield name.value, value

    def section(
        self,
        node: Node | None,
        key: str,
        allowed: tuple[str, ...],
        texts: tuple[str, ...] = (),
    ) -> dict[str, Node]:
        """The values of a mapping whose names are known.

        Args:
            texts: names whose value is not there either where it is an empty text.
        """
        found = {}
        for name, value in self.entries(node, key):
            if name not in allowed:
                words = f"no such key: allowed are {', '.join(allowed)}"
                self.wrong(value, joined(key, name), words)
            elif not (_absent(value) or (name in texts and value.value == "")):
                found[name] = value
        return found

    def text(self, node: Node | None, key: str) -> str:
        """A word or a text, "" where there is none."""
        if node is None or isinstance(node, ScalarNode):
            return "" if node is None else str(node.value)
        self.wrong(node, key, "it must be a text")
        return ""

    def truth(self, node: Node | None, key: str) -> bool | None:
        """True or false; None where there is nothing."""
        if node is None:
            return None
        found = _TRUTHS.get(self.text(node, key).lower())
        if found is None:
            self.wrong(node, key, "it must be true or false")
        return found

    def texts(self, node: Node | None, key: str) -> list[tuple[str, Node]]:
        """The texts of a list."""
        if node is None:
            return []
        if not isinstance(node, SequenceNode):
            self.wrong(node, key, "it must be a list")
            return []
        return [(self.text(item, key), item) for item in node.value]


def joined(section: str, name: str) -> str:
    """A key's whole name. One that is no word may be a secret in the wrong place."""
    shown = name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,40}", name) else "…"
    return f"{section}.{shown}" if section else shown


def _absent(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"

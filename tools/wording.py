"""The words of docstrings and comments, and names that stand for two things.

`python -m tools.wording [FOLDER ...]` lists all faults against `docs/develop/style.md`.
"""

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.documents import ROOT

MAX_WORDS = 25
"""Words of a sentence."""

FOLDERS = (
    *("api_exporter", "checks", "deploy", "setup.py", "simulation"),
    *("tests", "tools"),
)

NO_SCRIPTS = {
    *(".asc", ".c", ".go", ".json", ".md", ".mod", ".py", ".pyc", ".sum", ".txt")
}
"""Endings of files without such comments, or that are no part of the project."""

RIDDLES = (
    r"whoever|whom|nobody|everybody|anybody|told|anew|front door|tried again|"
    r"tries again|re-?reads?|looks? again|"
    r"(?:a|the|each|every|first|last|this) rounds?"
)
"""Words that the field has a better one for, in documents and code."""

PERSONS = re.compile(
    rf"\b(?:{RIDDLES}|whatever|who|somebody|someone|strangers?|said|asked|wants?|wanted|minds|"
    r"lets|gone|ours|theirs|knows? of)\b",
    re.IGNORECASE,
)
"""The same, and words for persons where there is a program."""

FOREIGN_WORDS = re.compile(
    r"[a-z](?:Error|Exception|Failed|Lost|Done)\b|\bErrno\b|<class|object at 0x|`"
    r"|\bExpected\b|truncated|codec|malformed|recursion|zlib|decompress"
)
"""Names of exceptions, and words of decoders: no message of a failure has them."""

FIRST = {"What", "Whether", "Of", "Those", "Such", "It", "Who", "They"}
"""First words of a docstring that does not name its subject."""

EVERYWHERE = {
    "FAMILIES",
    "FINDERS",
    "RESOURCES",
    "SUBJECT",
    "C",
    "K",
    "P",
    "R",
    "S",
    "T",
}
"""Names with one meaning in several modules: parts of a subject, and type variables."""

SECTION = re.compile(r"(?m)^(?:Args|Attributes):\n((?: .*\n?)+)")
"""Descriptions of arguments or attributes."""

SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def files(folders: Iterable[str] = FOLDERS) -> Iterator[Path]:
    """Yield all Python files below some folders, in order."""
    for folder in folders:
        path = ROOT / folder
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def scripts() -> Iterator[Path]:
    """Yield other files whose comments begin with `#`: of deploy, workflows, builds."""
    for name in (".ci", ".github", "deploy", "Makefile", "setup.cfg", "pyproject.toml"):
        path = ROOT / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and file.suffix not in NO_SCRIPTS:
                yield file


def script_faults(path: Path) -> Iterator[str]:
    """Yield one line for each fault in the comments of a script or configuration."""
    text = path.read_text(encoding="utf-8")
    for block in re.finditer(r"(?m)(?:^ *#(?!!).*\n)+", text):
        line = text.count("\n", 0, block.start()) + 1
        where = f"{path.relative_to(ROOT)}:{line}"
        yield from sentence_faults(where, re.sub(r"(?m)^ *# ?", "", block[0]))


def sentence_faults(where: str, text: str) -> Iterator[str]:
    """Yield one line for each sentence with a word to avoid, or too many words."""
    for sentence in sentences(text):
        if word := PERSONS.search(sentence):
            yield f"{where}: {word[0]}: {sentence}"
        if len(sentence.split()) > MAX_WORDS:
            yield f"{where}: {len(sentence.split())} words: {sentence}"


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of docstrings, those of constants and fields included."""
    for node in ast.walk(tree):
        for child in getattr(node, "body", []) if isinstance(node, SCOPES) else []:
            match child:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield child.lineno, text


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and text of comments; adjacent lines are one comment."""
    start, end, words = 0, 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        alone = not token.line[: token.start[1]].strip()
        text = token.string.lstrip("# ")
        if alone and token.start[0] == end + 1:
            end, words = end + 1, f"{words} {text}"
        else:
            if words:
                yield start, words
            start, words = token.start[0], text
            end = start if alone else 0
    if words:
        yield start, words


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; a quoted name is one word."""
    for paragraph in re.split(r"\n\s*\n|\n\s*(?=[*-] |\d\. )", text):
        line = re.sub(r"`[^`]*`", "CODE", " ".join(paragraph.split()))
        yield from re.split(r"(?<=[.:;?!])\s+(?=[A-Z0-9<“\"(])|;\s|:\s", line)


def faults(path: Path) -> Iterator[str]:
    """Yield one line for each fault in the docstrings and comments of a file."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    for line, name in unknown_names(tree):
        yield f"{path.relative_to(ROOT)}:{line}: {name} does not exist"
    found = [(*where, True) for where in docstrings(tree)]
    found += [(*where, False) for where in comments(source)]
    for line, text, is_docstring in sorted(found):
        where = f"{path.relative_to(ROOT)}:{line}"
        first = re.match(r"\w*", text.strip())
        if is_docstring and first and first[0] in FIRST:
            yield f"{where}: begins with {first[0]}: {text.strip()[:60]}"
        yield from sentence_faults(where, text)


def unknown_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of documented arguments and attributes that do not exist."""
    for node in ast.walk(tree):
        if not isinstance(node, SCOPES):
            continue
        if sections := SECTION.findall(ast.get_docstring(node) or ""):
            known = {
                getattr(part, field, None)
                for part in ast.walk(node)
                for field in ("arg", "attr", "id", "name")
            }
            for section in sections:
                for name in set(re.findall(r"(?m)^    (\w+): ", section)) - known:
                    yield node.body[0].lineno, name


def defined(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield public classes and constants of a module, each with its code."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, ast.dump(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            for target in (
                node.targets if isinstance(node, ast.Assign) else [node.target]
            ):
                if isinstance(target, ast.Name) and target.id.isupper():
                    yield target.id, ast.dump(node.value)


def ambiguous() -> Iterator[str]:
    """Yield public classes and constants of the package with a name of two meanings."""
    meanings: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in files(["api_exporter"]):
        for name, code in defined(ast.parse(path.read_text(encoding="utf-8"))):
            if not name.startswith("_") and name not in EVERYWHERE:
                meanings[name].setdefault(code, path.relative_to(ROOT))
    for name, places in sorted(meanings.items()):
        if len(places) > 1:
            yield f"{name}: {', '.join(map(str, places.values()))}"


if __name__ == "__main__":
    paths = list(files(sys.argv[1:] or FOLDERS))
    lines = [fault for path in paths for fault in faults(path)] + [*ambiguous()]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    count = sum(len(list(docstrings(tree))) for tree in trees)
    lines.append(f"{len(lines)} faults, {count} docstrings")
    sys.stdout.write("\n".join([*lines, ""]))

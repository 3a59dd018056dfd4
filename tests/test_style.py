"""The rules of `docs/develop/style.md` that a program can check."""

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from twisted.python.reflect import namedAny
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.settings.definitions import RETIRED, SETTINGS
from api_exporter.subjects.table import FINDERS
from tools import prometheus, wording
from tools.documents import MADE, ROOT, metrics
from tools.wording import faults

LONGEST = 25
"""Words of a sentence."""

OURS = re.compile(
    r"(?<!define )(?<!:)\b(?:netbird_api|api_exporter)_[a-z0-9_]+(?![*…\w])"
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SETTING = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")

BANNED = re.compile(
    rf"\b(?:{wording.RIDDLES}|the upstream|none of ours|cannot be told|a defect)\b",
    re.IGNORECASE,
)
"""Words that documents and messages do not have."""

FREE = {"CHANGELOG.md"}
"""Documents of the past."""

GROUPS = yaml.safe_load(prometheus.ALERTS.read_text(encoding="utf-8"))["groups"]
ALERTS = [alert for group in GROUPS for alert in group["rules"]]

SMALL = {"an", "and", "are", "but", "by", "has", "have", "is", "it", "its", "no", "not"}
SMALL |= {"a", "of", "off", "on", "one", "or", "the", "to"}
"""Words that say little."""

OTHERS = set(
    re.findall(
        r"\w+",
        "API_EXPORTER_VERSION ARTIFACTHUB_ID HTTPS_PROXY HTTP_AGENT HTTP_PROXY"
        " IMAGE_BASE MALLOC_ARENA_MAX MALLOC_MMAP_THRESHOLD_ NETBIRD_API_TOKEN"
        " NETBIRD_API_URL NO_PROXY PIP_FIND_LINKS PIP_NO_INDEX RELEASE_KEY"
        " RELEASE_SECRET_KEY REQUEST_METHOD SOURCE_DATE_EPOCH SSL_CERT_FILE",
    )
)
"""Environment variables of other programs, or of a build."""


def documents() -> list[str]:
    """Paths of all documents, from the root."""
    folders = (ROOT / name for name in (".github", "deploy", "docs", "tests"))
    files = [*ROOT.glob("*.md"), *(x for y in folders for x in y.rglob("*.md"))]
    return sorted({str(path.relative_to(ROOT)) for path in files} - FREE)


def plain(text: str) -> str:
    """A document without its code and comments."""
    text = re.sub(r"^( *)```.*?^\1```", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"`[^`\n]*`", "CODE", text)


def prose(text: str) -> str:
    """The same without tables and headings."""
    lines = []
    for line in plain(text).split("\n"):
        if re.match(r" *(?:[-*]|\d+\.) ", line):
            lines.append("")
        lines.append("" if line.lstrip().startswith(("|", "#")) else line)
    return "\n".join(lines)


def sentences(text: str) -> Iterator[str]:
    """Its sentences; a link, and what stands in backquotes, is one word each."""
    for paragraph in re.split(r"\n\s*\n", prose(text)):
        line = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
        line = re.sub(r"`[^`]*`", "CODE", line).replace("*", "")
        yield from re.split(r"(?<=[.:;?!])\s+(?=[A-Z0-9<“\"(])|;\s|:\s", line)


def strings(node: ast.AST) -> Iterator[str]:
    """All texts in Python code but its documentation."""
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.JoinedStr):
        values = (v.value if isinstance(v, ast.Constant) else "X" for v in node.values)
        yield "".join(map(str, values))
        children = [x for x in children if isinstance(x, ast.FormattedValue)]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in children:
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            yield from strings(child)


def stems(text: str) -> set[str]:
    """The words of a text that say something, by their first letters."""
    words = re.findall(r"[a-z]+", re.sub(r"{{.*?}}", " ", text).lower())
    return {word[:4] for word in words} - {word[:4] for word in SMALL}


def said() -> Iterator[tuple[str, str]]:
    """Findings, lines, errors, advice, HELP texts and alerts, and where they are."""
    for path in sorted((ROOT / "api_exporter").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if not name.startswith(("api_exporter/demo/", "api_exporter/web/status/pages")):
            for text in strings(ast.parse(path.read_text(encoding="utf-8"))):
                if text.count(" ") > 1:
                    yield name, re.sub(r"{{.*?}}", "X", text)
    for alert in ALERTS:
        notes = alert["annotations"]
        for name in ("summary", "description"):
            yield alert["alert"], re.sub(r"{{.*?}}", "X", notes[name])


ROUTING = ast.parse((ROOT / "api_exporter/netbird/routing.py").read_text())


def is_private(node: ast.stmt) -> bool:
    """Return whether a statement is a function or constant of one module only."""
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Name) and node.targets[0].id[0] == "_"
    return isinstance(node, ast.FunctionDef) and node.name[0] == "_"


def findings() -> Iterator[tuple[str, str]]:
    """Alerts, and all that the function may say that makes the same a finding."""
    for finder in FINDERS:
        path = ROOT / f"{finder.find.__module__.replace('.', '/')}.py"
        source = path.read_text(encoding="utf-8")
        module = ast.parse(source).body
        private = (node for node in module if is_private(node))
        others = " ".join(text for node in private for text in strings(node))
        if "netbird.routing" in source:  # networks and routes share words
            others += " ".join(strings(ROUTING))
        said_here = strings(ast.parse(inspect.getsource(finder.find)))
        text = " ".join([*said_here, others])
        for kind in finder.kinds:
            if kind.lasts:
                yield kind.name, f"{kind.noun} {text}"


def anchors(path: Path) -> set[str]:
    """Return the anchors that a forge makes of the headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading.lower())).replace(" ", "-")
        for heading in headings
    } | set(re.findall(r'id="([^"]+)"', path.read_text(encoding="utf-8")))


class StyleTests(SynchronousTestCase):
    maxDiff = None

    def test_sentences(self) -> None:
        long = [
            f"{path}: {len(sentence.split())}: {sentence}"
            for path in documents()
            for sentence in sentences((ROOT / path).read_text(encoding="utf-8"))
            if len(sentence.split()) > LONGEST
        ]
        self.assertEqual([], long)

    def test_words(self) -> None:
        banned = [
            f"{path}: {found[0]}: {line}"
            for path in documents()
            if path != "docs/develop/style.md"
            for line in plain((ROOT / path).read_text(encoding="utf-8")).split("\n")
            if (found := BANNED.search(line))
        ]
        self.assertEqual([], banned)

    def test_messages(self) -> None:
        """Settings, findings, log lines and alerts keep the rules of documents."""
        found = [
            f"{where}: {sentence}"
            for where, text in said()
            for sentence in sentences(text)
            if len(sentence.split()) > LONGEST or BANNED.search(sentence)
        ]
        self.assertEqual([], found)

    def test_code(self) -> None:
        """Docstrings and comments keep the same rules."""
        self.assertEqual([], [f for path in wording.files() for f in faults(path)])

    def test_functions(self) -> None:
        """A function of the package has at most sixty lines."""
        functions = [
            (f"{path.name}: {node.name}", node.end_lineno - node.lineno + 1)
            for path in (ROOT / "api_exporter").rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.end_lineno is not None
        ]
        self.assertGreater(len(functions), 1000)
        self.assertEqual([], [one for one in functions if one[1] > 60])

    def test_scripts(self) -> None:
        """So do the comments of scripts, rules, units and other files."""
        paths = list(wording.scripts())
        self.assertGreater(len(paths), 60)
        self.assertEqual([], [f for path in paths for f in wording.script_faults(path)])

    def test_meanings(self) -> None:
        """No name of a public class or constant has two meanings in the package."""
        self.assertEqual([], list(wording.ambiguous()))

    def test_one_voice(self) -> None:
        """The words of an alert's summary are those of its runbook and its finding."""
        text = (ROOT / "docs/runbooks.md").read_text(encoding="utf-8")
        saying = dict(
            re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        )
        pairs = [*saying.items(), *findings()]
        wanted = {a["alert"]: stems(a["annotations"]["summary"]) for a in ALERTS}
        self.assertEqual(wanted.keys(), saying.keys())
        self.assertGreater(len(pairs), 1.5 * len(wanted))
        missing = {
            (name, text[:50]): wanted[name] - stems(text) for name, text in pairs
        }
        self.assertEqual({}, {pair: words for pair, words in missing.items() if words})

    def test_links(self) -> None:
        """No link inside of the repository leads nowhere."""
        dead = []
        for path in documents():
            file = ROOT / path
            for target in LINK.findall(file.read_text(encoding="utf-8")):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                there = (file.parent / name).resolve() if name else file
                if not there.exists() or (
                    anchor and there.suffix == ".md" and anchor not in anchors(there)
                ):
                    dead.append(f"{path}: {target}")
        self.assertEqual([], dead)

    def test_pages(self) -> None:
        """Each page of documents that code, a dashboard or a script names exists."""
        boards = (ROOT / "deploy/grafana").rglob("*.json")
        named = [
            (str(path.relative_to(ROOT)), page)
            for path in (*wording.files(), *wording.scripts(), *boards)
            for page in re.findall(
                r"\bdocs/[\w/.-]+\.md\b", path.read_text(encoding="utf-8")
            )
        ]
        self.assertGreater(len(named), 50)
        foreign = {"docs/http_sd.md"}
        missing = [x for x in named if not (ROOT / x[1]).exists()]
        self.assertEqual([], [x for x in missing if x[1] not in foreign])

    def test_tree(self) -> None:
        """The tree in CONTRIBUTING.md has each folder of code, and nothing else."""
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        tree = text.partition("```\n")[2].partition("```")[0]
        named = set(re.findall(r"(?m)^\S+", tree))
        self.assertEqual(
            {name for name in named if name.endswith("/")},
            {name for name in named if (ROOT / name).is_dir()},
        )
        self.assertEqual([], [x for x in named if not (ROOT / x).exists()])
        self.assertFalse((ROOT / "api_exporter/newsfragments").exists())
        code = {f"{path.relative_to(ROOT).parts[0]}/" for path in wording.files()}
        self.assertLessEqual(code - {"setup.py/"}, named)

    def test_files(self) -> None:
        """Each module and folder that documents for developers name exists."""
        places = (ROOT, ROOT / "api_exporter")
        found = [
            (path, name)
            for path in documents()
            if path.startswith(("docs/develop/", "CONTRIBUTING"))
            for name in re.findall(
                r"`([\w./-]+/(?:[\w.-]+\.(?:py|html|txt|sh|yml))?)`",
                (ROOT / path).read_text(encoding="utf-8"),
            )
            if not re.search("[A-Z]{4}", name)
        ]
        self.assertGreater(len(found), 60)
        missing = [
            (path, name)
            for path, name in found
            if not name.startswith(("build/", "/"))
            and not any((place / name).exists() for place in places)
        ]
        self.assertEqual([], missing)

    def test_modules(self) -> None:
        """Each module that a document names can be imported, and a recipe's tests."""
        named = {
            (path, name)
            for path in documents()
            for name in re.findall(
                r"\bapi_exporter(?:\.[a-z_]+)+(?![\w(./-])",
                (ROOT / path).read_text(encoding="utf-8"),
            )
        }
        self.assertTrue(named)
        unknown = [x for x in named if importlib.util.find_spec(x[1]) is None]
        self.assertEqual([], unknown)
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        for name in set(re.findall(r"\btests(?:\.\w+)+", text)):
            namedAny(name)  # a module, or a class of one

    def test_names(self) -> None:
        """Each metric and setting that a document names exists."""
        families = set(re.findall(r"`([a-z_0-9]+)`", metrics().partition(MADE)[2]))
        known = {setting.name for setting in SETTINGS} | RETIRED.keys() | OTHERS
        unknown = []
        for path in documents():
            text = (ROOT / path).read_text(encoding="utf-8")
            for name in set(OURS.findall(text)):
                base = re.sub(r"_(?:bucket|count|sum)$", "", name)
                if not {name, base} & families:
                    unknown.append(f"{path}: {name}")
            names = set(SETTING.findall(text)) - known
            unknown += [f"{path}: {name}" for name in names]
        self.assertEqual([], sorted(unknown))

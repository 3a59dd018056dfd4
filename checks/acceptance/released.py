"""The result of `make release`, used as by its users."""

import json
import os
import re
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

from checks.acceptance import helm
from checks.acceptance.check import (
    BUILD,
    ROOT,
    Failed,
    Missing,
    expect,
    program,
    run,
    run_refused,
)
from checks.acceptance.engine import Engine
from checks.acceptance.pages import TOKEN, URL, checkout, script

SYSTEM_PYTHON = "/usr/bin/python3"
"""A Python with a shared library, which the executables need."""

_EXECUTABLE, _WHEEL = "The executable", "The wheel"
"""Sections of `docs/install/other.md`."""

_IMAGE = r"api-exporter-{v}-image-linux-\w+\.tar"
"""The archive of the image, which needs the registry of its base."""

_FORMS = (
    r"api-exporter-{v}\.tgz",
    r"api-exporter-{v}-dashboards\.tar\.gz",
    _IMAGE,
    r"api_exporter-{v}-py3-none-any\.whl",
    r"api_exporter-{v}\.tar\.gz",
    r"api-exporter-linux-\w+",
    r"api-exporter-{v}-linux-\w+\.tar\.gz",
    r"api-exporter_{v}-1_\w+\.deb",
    r"api-exporter-{v}\.cdx\.json",
    r"SHA256SUMS",
    r"UNSIGNED\.txt",
)


@cache
def products() -> Path:
    """Build a release of the commit, once. Return the clone with `dist/release`."""
    program("gcc")
    commit = run("git", "rev-parse", "HEAD").strip()
    made = BUILD / "release" / commit
    if not made.exists():
        shutil.rmtree(BUILD / "release", ignore_errors=True)
        unfinished = BUILD / "release" / "unfinished"
        run("git", "clone", "--quiet", ROOT, unfinished)
        tools = unfinished / "build" / "tools"
        tools.mkdir(parents=True)
        env = {"PATH": f"{tools}:{os.environ['PATH']}", "BUILDAH_ISOLATION": "chroot"}
        with suppress(
            Missing
        ):  # Reported by the goal itself; the package needs neither.
            env["ENGINE"] = str(Engine(tools).write_wrapper("buildah"))
            (tools / "helm").symlink_to(helm.program())
        pages = map(checkout, ("debian.md", "other.md", "container.md"))
        goals = re.findall(r"\bmake (\w+)", " ".join(pages))
        goal = (*goals, "release", f"PYTHON={SYSTEM_PYTHON}")
        printed = run("make", *goal, cwd=unfinished, env=env)
        shutil.rmtree(tools)
        (unfinished / "printed").write_text(printed)
        unfinished.rename(made)
    return made


def release(folder: Path) -> str:
    """Check the files of a release and its signature. Every form is there, but without
    the registry of its base the output reports the missing image. The signature covers
    the files. Each form runs by the commands of its page.
    """
    for needed in ("buildah", "gpg"):
        program(needed)
    shutil.rmtree(BUILD / "release", ignore_errors=True)
    products.cache_clear()
    tree = products()
    made = tree / "dist" / "release"
    printed = (tree / "printed").read_text()
    seen = [f"{x.name}: {x.stat().st_size // 1024} kB" for x in sorted(made.iterdir())]
    seen += [
        x.strip()
        for x in re.findall(r"^(?:  .*: .*|not signed: .*)$", printed, re.MULTILINE)
    ]
    version = run(made / "api-exporter-linux-amd64", "--version").split()[1]
    # A chart, a package of Debian and one of Python each mark it in their own way.
    numbers = re.escape(version).replace(r"\.dev", "[-.~]dev")
    for form in _FORMS:
        wanted = re.compile(form.format(v=numbers))
        reported = form == _IMAGE and "\n  image: " in printed
        if not (reported or any(map(wanted.fullmatch, os.listdir(made)))):
            raise Failed(f"nothing like {wanted.pattern} among\n" + "\n".join(seen))
    if "unsigned: SIGN names no key" not in printed:
        raise Failed(printed)
    seen.append(_check_repeated(tree, folder / "again"))
    seen.append(_check_sbom(tree, next(made.glob("*.cdx.json"))))
    seen.append(_check_signature(tree, made, folder / "keys"))
    for section in (_EXECUTABLE, _WHEEL):
        seen.append(_follow_page(made, folder, section, commit(tree)))
    return "\n".join(seen)


def commit(tree: Path) -> str:
    """Return the commit that the release's programs print."""
    return run("git", "rev-parse", "--short=12", "HEAD", cwd=tree).strip()


def _check_repeated(tree: Path, other: Path) -> str:
    """Check that the forms without compiler are the same bytes in another folder."""
    run("git", "clone", "--quiet", tree, other)
    run("chmod", "-R", "go+w", other)
    for built in ("build/directory", "build/executable", "dist"):
        (other / built).parent.mkdir(exist_ok=True)
        shutil.copytree(tree / built, other / built, symlinks=True)
    tools = other / "build" / "tools"
    tools.mkdir()
    (tools / "helm").symlink_to(helm.program())
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "ENGINE": "none"}
    env["PYTHON"] = SYSTEM_PYTHON
    shutil.rmtree(other / "dist/release")
    run(other / "deploy/release/release.sh", cwd=other, env=env)
    same_bytes = []
    for path in sorted((other / "dist/release").iterdir()):
        if path.name != "SHA256SUMS":
            before = (tree / "dist/release" / path.name).read_bytes()
            expect(f"{path.name} is the same", True, before == path.read_bytes())
            same_bytes.append(path.name)
    return f"the same bytes twice: {', '.join(same_bytes)}"


def _check_sbom(tree: Path, sbom: Path) -> str:
    """Check the SBOM against the lock. It has the lock's packages for this system with
    their hashes. Its root is the exporter, from which all components can be reached.
    """
    told = json.loads(sbom.read_text())
    root = told["metadata"]["component"]
    expect("the root", "api-exporter", root["name"])
    depends = {x["ref"]: set(x.get("dependsOn", ())) for x in told["dependencies"]}
    reached, new = set[str](), {root["bom-ref"]}
    while new:
        reached |= new
        new = {x for ref in new for x in depends.get(ref, ())} - reached
    parts_of_us = {x["bom-ref"] for x in told["components"]}
    expect("what the root does not reach", set(), parts_of_us - reached)
    lock = (tree / "deploy/lock/run.txt").read_text()
    for part in told["components"]:
        if part["purl"].startswith("pkg:pypi/"):
            [hashed] = part["hashes"]
            expect(f"{part['name']}: locked", True, hashed["content"] in lock)
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE))
    parts = {
        re.sub(r"[-_.]+", "-", x["name"]).lower(): x["version"]
        for x in told["components"]
        if not x["purl"].startswith("pkg:deb/")
    }
    libraries = [x["name"] for x in told["components"] if "pkg:deb/" in x["purl"]]
    if not {"libexpat1", "libssl3", "zlib1g"} <= {*libraries}:
        raise Failed(f"libraries of Debian's: {libraries}")
    strangers = set(parts.items()) - set(locked.items())
    expect("beside the lock", {"openssl", "python"}, {name for name, _ in strangers})
    return (
        f"SBOM: {len(parts)} parts, those of the lock and Python's own, "
        f"{len(libraries)} of Debian's"
    )


def _check_signature(tree: Path, made: Path, keys: Path) -> str:
    """Check the signature of a release. A key other than the tree's signs nothing. The
    page's commands accept the signature, and refuse it after a byte has changed.
    """
    keys.mkdir(mode=0o700)
    for name in ("deploy/release", "docs/install"):
        shutil.copytree(tree / name, keys / "tree" / name)
    seal = keys / "tree/deploy/release/seal.sh"
    env = {"GNUPGHOME": str(keys), "SIGN": "release@example.org"}
    key = ("--quick-generate-key", env["SIGN"], "ed25519", "sign", "never")
    run(program("gpg"), "--batch", "--quiet", "--passphrase", "", *key, env=env)
    try:
        said = run_refused(seal, made, env=env)
        if "it is not the key of deploy/release/key.asc" not in said:
            raise Failed(said)
        (fingerprint,) = re.findall(r"gpg --armor --export (\w{40})", said)
        (seal.parent / "key.asc").write_text(
            run("gpg", "--armor", "--export", fingerprint, env=env)
        )
        told = keys / "tree/docs/install/README.md"
        told.write_text(told.read_text().replace("none yet", fingerprint))
        expect("it says unsigned", True, (made / "UNSIGNED.txt").exists())
        run(seal, made, env=env)
        expect("it says unsigned", False, (made / "UNSIGNED.txt").exists())
        page = script("README.md", "Whose files these are")
        run("sh", "-c", page, cwd=made, env=env)
        sums = made / "SHA256SUMS"
        genuine = sums.read_text()
        sums.write_text(genuine.replace("a", "b", 1))
        said = run_refused("sh", "-c", page, cwd=made, env=env)
        bad = next(x for x in said.splitlines() if "BAD signature" in x)
        sums.write_text(genuine)
    finally:
        run("gpgconf", "--kill", "all", env=env)
    return f"signed; with another key: refused; with a byte changed: {bad}"


def _follow_page(made: Path, folder: Path, section: str, ours: str) -> str:
    """Run the commands of a section of `other.md` for a new user. The last command
    would not end, so it runs with other options.
    """
    home = folder / section.replace(" ", "-")
    home.mkdir(parents=True)
    env = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def by_user(commands: str, cwd: Path = made) -> str:
        return run("env", "-i", *_pairs(env), "sh", "-c", commands, cwd=cwd)

    exported = f"export UPSTREAM_API_URL={URL} UPSTREAM_API_TOKEN={TOKEN}\n"
    text = script("other.md", section)
    expect(f"{section}: {exported!r}", 1, text.count(exported))
    *lines, checked, last = text.replace(exported, "").splitlines()
    expect("the last two lines", checked, f"{last} --check")
    lines += [f"{last} --version", f"{last} --demo --once | grep ^netbird_api_peers"]
    shown = by_user("\n".join(lines)) + by_user(script("other.md", section, 1))
    versions = 2 if section == _EXECUTABLE else 1  # that of the directory, too
    expect(f"{section}: {ours}", versions, shown.count(ours))
    by_user(script("other.md", section, 2), ROOT)
    expect("what is left", [], [x for x in home.rglob("*") if not x.is_dir()])
    return f"{section}: installed, run, removed"


def _pairs(env: dict[str, str]) -> list[str]:
    kept = {
        k: v for k, v in os.environ.items() if k.lower().startswith(("pip_", "ssl_"))
    }
    return [f"{name}={value}" for name, value in {**kept, **env}.items()]

"""The container image: built twice, inspected, and run without privileges."""

import gzip
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from api_exporter.demo.server import DEMO_TOKEN
from checks.acceptance import simulated
from checks.acceptance.check import ROOT, Failed, expect, program, refused, run, until
from checks.acceptance.engine import Engine, Running
from checks.acceptance.pages import URL, checkout, given, script, stub
from checks.acceptance.roots import archive
from tests.authority import Authority
from tests.integration.programs import get

BUNDLE = "/etc/ssl/certs/ca-certificates.crt"

BASE = "localhost/base"
"""The image used instead of the official one of Python: Debian with python3-venv."""

IMAGE = "localhost/api-exporter"

MB = 1_000_000

MAX_LAYER = 50 * MB
"""The most bytes in our layer of the image."""

UNWANTED = re.compile(
    r"(^|/)(pip[0-9.]*|pip-[^/]*|ensurepip)$"
    r"|(^|/)bin/([^/]*-)?(as|c\+\+|cc|clang|cpp|g\+\+|gcc|ld)(-[0-9]+)?$"
    r"|^opt/.*/tests?$"
)
"""Paths of pip, compilers and tests."""

LABELS = ("created", "revision", "version")


def image(folder: Path) -> str:
    """Check that both builds are equal, small and hardened, and that they run."""
    engine = prepare(folder)
    first = _digest(engine, folder / "first")
    build_image(engine, "podman")
    if (second := _digest(engine, folder / "second")) != first:
        raise Failed(f"built by buildah {first}, by podman {second}")
    seen = (
        f"built by buildah and by podman: {first}",
        _check_sizes(folder / "first"),
        _check_config(engine),
        _check_contents(engine),
        _check_service(engine),
        _check_bundle(engine, folder),
    )
    return "\n".join(seen)


def prepare(folder: Path) -> Engine:
    """Return an engine with the image and its base."""
    engine = Engine(folder)
    engine.load(archive(13, "python", "ca-certificates,python3,python3-venv"), BASE)
    build_image(engine, "buildah")
    return engine


def build_image(engine: Engine, name: str) -> None:
    """Build the image with the script for users."""
    env = {**_build_env(), "ENGINE": str(engine.write_wrapper(name))}
    run("deploy/container/build.sh", "--tag", IMAGE, *_build_options(engine), env=env)


def _build_options(engine: Engine) -> list[str]:
    """Return options that give pip in the build this machine's index."""
    configured = run("pip", "config", "list")
    values = re.findall(r"^global\.([\w-]+)=(.*)$", configured, re.MULTILINE)
    lines = [f"{key} = {value.strip(chr(39))}\n" for key, value in values]
    (engine.folder / "pip.conf").write_text("".join(["[global]\n", *lines]))
    options = ["--isolation", "chroot", "--network", "host"]
    options += ["--volume", f"{engine.folder}/pip.conf:/etc/pip.conf:ro"]
    return [*options, "--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"]


def _build_env() -> dict[str, str]:
    return {"BASE": BASE, "BUILDER": BASE, **_commit()}


def page(folder: Path) -> str:
    """Check that the commands of the page, from a checkout, run the image."""
    engine = Engine(folder)
    engine.load(archive(13, "python", "ca-certificates,python3,python3-venv"), BASE)
    command = checkout("container.md")
    env = {**_build_env(), "ENGINE": str(engine.write_wrapper("podman"))}
    options = " ".join(_build_options(engine))
    run("sh", "-c", f"{command} {options}", env=env)
    tools = folder / "tools"
    tools.mkdir()
    engine.write_docker(tools / "docker")
    stub(tools)
    ours = command.rpartition(" ")[2]
    text = "\n".join(script("container.md", x) for x in ("", "Remove"))
    [theirs] = re.findall(r"IMAGE=(\S+)", text)
    started, removed = text.replace(theirs, ours).split("docker rm", 1)
    reads = "docker exec api-exporter api-exporter --check"
    commands = given(f"{started}{reads}\ndocker rm{removed}", DEMO_TOKEN)
    commands = commands.replace(URL, "http://127.0.0.1:9000")
    upstream = f"cd {ROOT}; exec {sys.executable} -m checks.benchmarks.upstream 9000 20"
    beside = f"sh -c '{upstream}' & trap \"kill $!\" EXIT"
    alone = f"ip link set lo up; {beside}; cd {folder}"
    env = {"PATH": f"{tools}:{os.environ['PATH']}"}
    there = (program("unshare"), "--net", "sh", "-c")
    said = run(*there, f"{alone}\n{commands}", env=env)
    if "api_exporter_build_info" not in said:
        raise Failed(said)
    expect("what is left", [], list((folder / "api-exporter").iterdir()))
    return f"{ours}: started, read, checked and removed by the page"


@cache
def _commit() -> dict[str, str]:
    """Return the commit and its time, which stay the same for all builds of a run."""
    commit = run("git", "rev-parse", "--short=12", "HEAD").strip()
    seconds = run("git", "log", "-1", "--format=%ct", commit).strip()
    return {"SOURCE_COMMIT": commit, "SOURCE_DATE_EPOCH": seconds}


def _digest(engine: Engine, folder: Path) -> str:
    engine.save(IMAGE, folder)
    manifest = (folder / "manifest.json").read_bytes()
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def _check_sizes(folder: Path) -> str:
    """Check the size of our layer, which is the last one."""
    manifest: Any = json.loads((folder / "manifest.json").read_text())
    layers = manifest["layers"]
    digest = layers[-1]["digest"].removeprefix("sha256:")
    ours = len(gzip.decompress((folder / digest).read_bytes()))
    compressed = sum(layer["size"] for layer in layers)
    if ours > MAX_LAYER:
        raise Failed(f"our layer: {ours} bytes; compressed: {compressed}")
    return (
        f"our layer {ours / MB:.1f} MB ({layers[-1]['size'] / MB:.1f} compressed), "
        f"the whole {compressed / MB:.1f} MB compressed in {len(layers)} layers"
    )


def _check_config(engine: Engine) -> str:
    """Check user, health check and labels."""
    [found] = json.loads(engine.podman("image", "inspect", IMAGE))
    user, labels = found["User"], found["Labels"]
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", user) or "Healthcheck" not in found:
        raise Failed(f"user {user!r}, health check {found.get('Healthcheck')}")
    told = {label: labels[f"org.opencontainers.image.{label}"] for label in LABELS}
    if told["revision"] != _commit()["SOURCE_COMMIT"] or not all(told.values()):
        raise Failed(f"labels: {told}")
    return f"user {user}; " + ", ".join(f"{x} {told[x]}" for x in LABELS)


def _check_contents(engine: Engine) -> str:
    """Check that no path belongs to pip, a compiler or tests."""
    root = Path(engine.podman("image", "mount", IMAGE).strip())
    found = [str(path.relative_to(root)) for path in root.rglob("*")]
    unwanted = [x for x in found if UNWANTED.search(x)]
    if unwanted:
        raise Failed(f"in the image: {', '.join(unwanted[:20])}")
    engine.podman("image", "unmount", IMAGE)
    return f"{len(found)} paths: no pip, no compiler, no tests"


def _check_service(engine: Engine) -> str:
    """Check that it runs with a read-only root, is healthy, and stops."""
    with engine.started(IMAGE, "--demo", env={"DEMO_PEERS": "50"}) as container:
        container.healthy()
        _wait_until(container, b"netbird_api_peers{")
        container.stop()
        took = container.took
    if "netbird_api_peers{" not in engine.run_to_end(IMAGE, "--demo", "--once", env={}):
        raise Failed("--demo --once does not read the network")
    return f"podman: listens {took:.1f} s after `podman run`, healthy, stopped well"


def _check_bundle(engine: Engine, folder: Path) -> str:
    """Check that it trusts only the authorities in the system's bundle."""
    with upstream(folder) as (url, bundle):
        env = {"UPSTREAM_API_URL": url, "UPSTREAM_API_TOKEN": DEMO_TOKEN}
        with engine.started(IMAGE, env=env, mounts={bundle: BUNDLE}) as container:
            _wait_until(container, b"netbird_api_peer_info")
            container.stop()
        refusal = refused(lambda: engine.run_to_end(IMAGE, "--check", env=env))
        if "certificate" not in refusal:
            raise Failed(refusal)
    return "https: reads an upstream of an authority in its bundle, refuses another"


@contextmanager
def upstream(folder: Path) -> Iterator[tuple[str, Path]]:
    """Run a simulated API behind TLS. Yield its URL and a bundle with its authority."""
    authority = Authority()
    issued = authority.server()
    pem = folder / "server.pem"
    pem.write_bytes(issued.key + issued.pem)
    bundle = folder / "bundle.pem"
    bundle.write_bytes(authority.pem)
    with simulated.upstream(folder, 50, pem) as port:
        yield f"https://localhost:{port}", bundle


def _wait_until(container: Running, text: bytes) -> None:
    """Wait until the metrics contain a text."""
    url = f"http://127.0.0.1:{container.port}/metrics"
    until(lambda: text in get(url)[2], container.logs)

"""The measured servers: the real daemon, and servers that send prepared bytes."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from api_exporter.demo.server import DEMO_TOKEN
from api_exporter.subjects.table import RESOURCES
from checks.benchmarks.client import wait
from checks.benchmarks.processes import Program, empty_folder, module, running, twistd
from tests.integration.programs import free_port

ONCE = ",".join(f"{resource.name}=24h" for resource in RESOURCES)
"""REFRESH_INTERVALS for a daemon that is idle after its first refresh."""

MALLOC = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "131072"}
"""The settings of units and images."""

_NGINX = """
daemon off;
pid {directory}/nginx.pid;
worker_processes 1;
events {{ worker_connections 256; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    default_type text/plain;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {pages};
    }}
}}
"""
"""Debian's settings that affect the sending of a file."""


@contextmanager
def upstream(peers: int, directory: Path, kind: str = "passing") -> Iterator[int]:
    """Run the simulated API with ticks of a kind. Yield its port."""
    port = free_port()
    command = module("checks.benchmarks.upstream", port, peers)
    with running(command, directory, {"KIND": kind}, port=port) as program:
        wait(program, "/api/none", status=404)
        yield port


@contextmanager
def upstream_and_folder(peers: int, kind: str = "passing") -> Iterator[int]:
    """Run the simulated API in a new folder. Yield its port."""
    with empty_folder() as folder, upstream(peers, folder, kind) as port:
        yield port


@contextmanager
def daemon(upstream_port: int, directory: Path, **settings: str) -> Iterator[Program]:
    """Run `twistd api-exporter` as its unit does. It may not respond yet."""
    port = free_port()
    environ = {
        "UPSTREAM_API_URL": f"http://127.0.0.1:{upstream_port}",
        "UPSTREAM_API_TOKEN": DEMO_TOKEN,
        "LISTEN_ADDRESS": f"127.0.0.1:{port}",
        "HTTP_TIMEOUT": "60s",
        **MALLOC,
        **settings,
    }
    with running(twistd("api-exporter"), directory, environ, port=port) as program:
        yield program


@contextmanager
def bare(name: str, path: str, pages: Path, directory: Path) -> Iterator[Program]:
    """Run one of our modules with the files of a directory in memory."""
    port = free_port()
    command = module(f"checks.benchmarks.{name}", port, pages)
    with running(command, directory, port=port) as program:
        wait(program, path)
        yield program


site = partial(bare, "static", "/plain")
library = partial(bare, "library", "/metrics")


@contextmanager
def nginx(pages: Path, directory: Path) -> Iterator[Program | None]:
    """Run nginx with the files of a directory. Yield None if it is not installed."""
    found = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        yield None
        return
    port = free_port()
    home = directory / "nginx"
    home.mkdir(exist_ok=True)
    # For root, nginx runs its worker as another user.
    for readable in (directory, pages):
        readable.chmod(0o755)
    text = _NGINX.format(directory=home, pages=pages, port=port)
    (home / "nginx.conf").write_text(text)
    command = [found, "-e", "stderr", "-p", str(home), "-c", str(home / "nginx.conf")]
    with running(command, directory, port=port) as program:
        wait(program, "/plain")
        yield program

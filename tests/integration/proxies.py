"""Real proxies and a real gateway on loopback ports, with configurations of our own."""

import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import TestCase

from tests.integration.programs import free_port, program, start, until

SQUID = """
http_port 127.0.0.1:{port}
http_access allow all
cache deny all
cache_log {directory}/cache.log
access_log stdio:{directory}/access.log
logfile_rotate 0
buffered_logs off
pid_filename none
netdb_filename none
pinger_enable off
coredump_dir {directory}
visible_hostname proxy.example
hosts_file {directory}/hosts
shutdown_lifetime 0 seconds
cache_mem 8 MB
"""

NGINX = """
daemon off;
user root;
master_process off;
pid {directory}/pid;
error_log {directory}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log {directory}/access.log;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {directory}/server.pem;
        ssl_certificate_key {directory}/server.pem;
        ssl_client_certificate {directory}/authority.pem;
        ssl_verify_client on;
        ssl_verify_depth 3;
        location / {{ proxy_pass {upstream}; }}
    }}
}}
"""


def folder(test: TestCase) -> Path:
    """A new folder that all may enter: squid drops its privileges."""
    made = tempfile.TemporaryDirectory()
    test.addCleanup(made.cleanup)
    path = Path(made.name)
    path.chmod(0o755)
    return path


class Served:
    """A program that listens.

    Attributes:
        address: host and port as they stand in a URL.
    """

    def __init__(self, directory: Path, address: str) -> None:
        self.address = address
        self._directory = directory

    def log(self) -> str:
        """Return the requests that it has logged so far."""
        path = self._directory / "access.log"
        return path.read_text() if path.exists() else ""


def squid(test: TestCase, directory: Path, hosts: str) -> Served:
    """Start Debian's squid, which drops its privileges.

    Args:
        hosts: names that it can resolve, as in /etc/hosts.
    """
    command = program("squid")
    directory.mkdir()
    directory.chmod(0o777)
    (directory / "hosts").write_text(hosts)

    def configure(port: int) -> list[str]:
        text = SQUID.format(port=port, directory=directory)
        (directory / "squid.conf").write_text(text)
        return [command, "-N", "-f", str(directory / "squid.conf"), "-n", f"t{port}"]

    return _served(test, directory, configure)


def nginx(
    test: TestCase, directory: Path, server: bytes, authority: bytes, upstream: str
) -> Served:
    """Start a gateway that requires a client certificate, in front of an upstream.

    Args:
        server: its own certificate and key.
        authority: the authority of its clients.
    """
    command = program("nginx")
    directory.mkdir()
    (directory / "server.pem").write_bytes(server)
    (directory / "authority.pem").write_bytes(authority)

    def configure(port: int) -> list[str]:
        text = NGINX.format(port=port, directory=directory, upstream=upstream)
        (directory / "nginx.conf").write_text(text)
        return [command, "-p", str(directory), "-c", str(directory / "nginx.conf")]

    return _served(test, directory, configure)


def _served(
    test: TestCase, directory: Path, configure: Callable[[int], list[str]]
) -> Served:
    port = free_port()
    running = start(test, configure(port), directory)

    def listening() -> bool:
        assert running.process.poll() is None, running.told()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    until(listening, f"{directory.name} listens")
    return Served(directory, f"127.0.0.1:{port}")

"""The unit under systemd: installed, reached in every way, upgraded, removed."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from api_exporter.demo.server import DEMO_TOKEN
from checks.acceptance.boots import System, booted, wait_until
from checks.acceptance.check import Failed, expect, refused
from checks.acceptance.installing import INSTALL, UNINSTALL
from checks.acceptance.pages import block, credential, script, stub
from checks.acceptance.roots import SOURCE, Root, make_root
from tests.authority import Authority

UNIT = "api-exporter.service"

UPSTREAM = "127.0.0.1:9000"
"""The address of a simulated API."""

ADDRESS = "127.0.0.1:8080"

MAX_EXPOSURE = 1.2

EVENTS = "/var/log/api-exporter/events.jsonl"

SOCKET = "/run/api-exporter/http.sock"

TABLE = ("inet", "api_exporter")

READ = "netbird_api_up 1.0"

_TLS = "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"

_PROGRAM = "/opt/api-exporter/bin/api-exporter"


def boots(release: int) -> Callable[[Path], str]:
    """Return the check that boots one release of Debian."""

    def check(folder: Path) -> str:
        """Check the unit on a booted system. It is hardened, reads the token as a
        credential and writes its events. It listens on TCP, a UNIX socket and systemd's
        socket. It is upgraded while it runs, runs after a reboot, and is removed
        completely.
        """
        root = make_root(folder, release)
        root.apt("install", "curl", "nftables", "python3-venv")
        stub(root.path / "usr/local/bin")
        config = root.path / "etc/api-exporter/config"
        with booted(root) as system:
            seen = [system.run("systemctl", "--version").splitlines()[0]]
            api, result = _follow_page(system, root)
            seen.append(result)

            def started(**settings: str) -> None:
                lines = {"UPSTREAM_API_URL": api, **settings}
                text = "".join(f"{name}={value}\n" for name, value in lines.items())
                config.write_text(text)
                # systemd refuses a sixth start within ten seconds.
                system.run("systemctl", "reset-failed", UNIT)
                system.run("systemctl", "restart", UNIT)

            started(EVENTS_FILE=EVENTS)
            system.wait_until('"activity_code"', "head", "--lines=1", EVENTS)
            owner = system.run("stat", "--format=%U %a", EVENTS).strip()
            seen.append(f"events in {EVENTS}: {owner}")
            seen.append(_check_credentials(system, root, api))
            started(LISTEN_ADDRESS=f"unix:{SOCKET}:mode=666")
            system.get_until(READ, SOCKET, "/metrics")
            seen.append(f"another user reads {SOCKET}")
            seen.append(_check_socket(system, started))
            system.run("systemctl", "stop", UNIT)
            system.run("systemctl", "enable", "--now", "api-exporter.socket")
            started(LISTEN_ADDRESS="systemd:domain=INET6:index=0")
            for where in (ADDRESS, "[::1]:8080"):
                system.get_until(READ, where, "/metrics")
            seen.append(f"socket: {log_lines(system, ' is at ')[-1]}")
            seen.append(_check_firewall(system))
            seen.append(_upgrade(system))
            expect("what went wrong", [], log_lines(system, "Traceback"))
        with booted(root) as system:
            system.get_until('"ok"', ADDRESS, "/health")
            system.wait_until("active", "systemctl", "is-active", UNIT)
            seen.append("it is back after the next boot")
            seen.append(_remove(system))
        return "\n".join(seen)

    return check


def _follow_page(system: System, root: Root) -> tuple[str, str]:
    """Run the page's commands. Return the address of an API and the result."""
    system.run(INSTALL)
    system.run("cp", "-aH", "/opt/api-exporter", "/opt/upstream")
    api = start_api(system, "/opt/upstream/bin/python", "-m", "api_exporter")
    system.run(UNINSTALL, "--purge")
    settings, url = root.path / "settings", f"UPSTREAM_API_URL={api}\n"
    settings.write_text(f"{url}UPSTREAM_API_TOKEN={DEMO_TOKEN}\n")
    there = f"cd {SOURCE}\n"
    system.run("sh", "-c", there + script("systemd.md"))
    system.get_until(READ, ADDRESS, "/metrics")
    (root.path / "etc/api-exporter/config").write_text(url)
    system.run("sh", "-c", there + credential("systemd.md", DEMO_TOKEN))
    system.get_until(READ, ADDRESS, "/metrics")
    return api, f"by the page, and with the token as a credential: {exposure(system)}"


def start_api(system: System, *command: str) -> str:
    """Run a simulated API beside the service. Return its address."""
    address = f"--setenv=LISTEN_ADDRESS={UPSTREAM}"
    system.run("systemd-run", "--quiet", "--unit=upstream", address, *command, "--demo")
    said = system.get_until('"url"', UPSTREAM, "/health")
    url: str = json.loads(said)["upstream"]["url"]
    return url


def exposure(system: System) -> str:
    """Return the service's user and exposure, as systemd computes it."""
    user = system.run("stat", "-c", "%U", f"/proc/{main_process(system)}").strip()
    expect("user", "api-exporter", user)
    said = system.run("systemd-analyze", "--no-pager", "security", UNIT)
    [number] = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", said)
    if float(number) > MAX_EXPOSURE:
        raise Failed(f"exposure {number}")
    return f"as {user}, exposure {number}"


def _check_credentials(system: System, root: Root, api: str) -> str:
    """Check the permissions that the pages' commands set. Only root reads accounts and
    tokens. The service's group reads the TLS files. The group adm reads the events,
    those written before the change included.
    """
    etc = root.path / "etc/api-exporter"
    accounts = etc / "accounts"
    accounts.mkdir()
    (accounts / "acme.token").write_text(DEMO_TOKEN)
    (accounts / "acme.conf").write_text(
        f"UPSTREAM_API_URL={api}\nUPSTREAM_API_TOKEN_FILE=acme.token\n"
        f"EVENTS_FILE={EVENTS}\n"
    )
    Authority().server().write(etc, "server")
    (etc / "web.yml").write_text(_TLS)
    (etc / "config").write_text("WEB_CONFIG_FILE=/etc/api-exporter/web.yml\n")
    group = "chgrp api-exporter web.yml server.*; chmod 640 web.yml server.*"
    system.run("sh", "-ec", f"cd /etc/api-exporter; {group}")
    dropins = root.path / "etc/systemd/system/api-exporter.service.d"
    (dropins / "events.conf").write_text(block("../logs.md", "systemd", 0, "ini"))
    system.run("sh", "-c", script("../logs.md", "systemd"))
    page = script("../accounts.md", "Tokens as credentials")
    system.run("sh", "-c", f"PATH=$PATH:/opt/api-exporter/bin\n{page}")
    system.wait_until("OK", _PROGRAM, "--health", "https://127.0.0.1:8080/ready")
    adm = ("setpriv", "--reuid=nobody", "--regid=adm", "--clear-groups")
    system.run(*adm, "head", "--lines=1", EVENTS)
    again = f"systemctl stop api-exporter; rm {EVENTS}*; systemctl start api-exporter"
    system.run("sh", "-ec", again)
    system.wait_until('"account":"acme"', *adm, "head", "--lines=1", EVENTS)
    stat = f"stat --format='%U:%G %a %n' {EVENTS} /etc/api-exporter/accounts/*"
    seen = ", ".join(system.run("sh", "-c", stat).splitlines())
    expect("what is root's alone", 2, seen.count("root:root 600"))
    for name in ("accounts.conf", "events.conf"):
        (dropins / name).unlink()
    system.run("systemctl", "daemon-reload")
    return f"accounts by LoadCredential, TLS, events for adm: {seen}"


def _check_socket(system: System, started: Callable[..., None]) -> str:
    """Check the page of the UNIX socket: one group reads it, and no port is open."""
    system.run("useradd", "--system", "--user-group", "prometheus")
    started()
    system.run(
        "sh", "-c", f"cd {SOURCE}\n{script('../security.md', 'No TCP port at all')}"
    )
    system.wait_until(
        "srw-rw---- api-exporter prometheus", "stat", "-c", "%A %U %G", SOCKET
    )
    group = "prometheus"
    wait_until(lambda: system.get(SOCKET, "/metrics", group=group), READ, SOCKET)
    for where in (SOCKET, ADDRESS):
        refusal = refused(partial(system.get, where, "/health"))
        expect(f"{where}: {refusal}", True, "curl: (7)" in refusal)  # not connected
    system.run("rm", f"/etc/systemd/system/{UNIT}.d/unix-socket.conf")
    system.run("systemctl", "daemon-reload")
    system.run("userdel", "prometheus")
    return "no TCP port: the group prometheus reads the socket, others do not"


def _check_firewall(system: System) -> str:
    """Check that the firewall's file loads with both words and admits localhost."""
    file = f"{SOURCE}/deploy/nftables/api-exporter.nft"
    for word in ("closed", "open"):
        system.run("sed", "-i", f"/_overlay =/s/= .*/= {word}/", file)
        system.run("nft", "-f", file)
        system.get_until(READ, ADDRESS, "/metrics")
        if f"goto {word}" not in system.run("nft", "list", "table", *TABLE):
            raise Failed(f"{word} is not what is loaded")
    system.run("nft", "delete", "table", *TABLE)
    return system.run("nft", "--version").strip() + ": both words"


def _upgrade(system: System) -> str:
    """Install again while the service runs."""
    before = main_process(system)
    system.run(INSTALL)
    system.get_until(READ, ADDRESS, "/metrics")
    if main_process(system) == before:
        raise Failed("it has not been restarted")
    program = system.run("readlink", "/opt/api-exporter").strip()
    command = system.run("cat", f"/proc/{main_process(system)}/cmdline")
    if f"/{program}/bin/python" not in command:
        raise Failed(f"{command} does not run in {program}")
    return "upgraded while it runs"


def _remove(system: System) -> str:
    """Check that no unit, user, directory or process remains."""
    main = main_process(system)
    system.run(UNINSTALL, "--purge")
    expect("the unit", "not-found", unit_property(system, "LoadState"))
    folders = ("/run", "/opt", "/etc", "/var/lib", "/var/log")
    places = " ".join(f"{folder}/api-exporter*" for folder in folders)
    expect(
        "what is left",
        "",
        system.run(
            "sh",
            "-c",
            f"getent passwd api-exporter; ls -d /proc/{main} {places} 2>&-; :",
        ),
    )
    state = system.run("systemctl", "is-system-running").strip()
    expect("the system", "running", state)
    return f"removed: no unit, user, directory or process; the system is {state}"


def main_process(system: System) -> str:
    return unit_property(system, "MainPID")


def unit_property(system: System, name: str) -> str:
    said = system.run("systemctl", "show", "--value", f"--property={name}", UNIT)
    return said.strip()


def log_lines(system: System, text: str) -> list[str]:
    """Return log lines of the service that contain a text."""
    said = system.run("journalctl", "--quiet", "--output=cat", f"--unit={UNIT}")
    return [line for line in said.splitlines() if text in line]

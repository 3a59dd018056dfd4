"""The booted unit with accounts from systemd credentials, and events for adm."""

from api_exporter.demo.server import DEMO_TOKEN
from checks.acceptance.boots import System
from checks.acceptance.check import expect
from checks.acceptance.pages import block, script
from checks.acceptance.roots import Root
from tests.authority import Authority

_TLS = "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"

_PROGRAM = "/opt/api-exporter/bin/api-exporter"


def check_credentials(system: System, root: Root, api: str, events: str) -> str:
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
        f"EVENTS_FILE={events}\n"
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
    system.run(*adm, "head", "--lines=1", events)
    again = f"systemctl stop api-exporter; rm {events}*; systemctl start api-exporter"
    system.run("sh", "-ec", again)
    system.wait_until('"account":"acme"', *adm, "head", "--lines=1", events)
    stat = f"stat --format='%U:%G %a %n' {events} /etc/api-exporter/accounts/*"
    seen = ", ".join(system.run("sh", "-c", stat).splitlines())
    expect("what is root's alone", 2, seen.count("root:root 600"))
    for name in ("accounts.conf", "events.conf"):
        (dropins / name).unlink()
    system.run("systemctl", "daemon-reload")
    return f"accounts by LoadCredential, TLS, events for adm: {seen}"

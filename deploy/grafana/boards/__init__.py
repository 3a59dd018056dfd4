"""Each board is a module; its file is made from it."""

from collections.abc import Callable
from pathlib import Path

from deploy.grafana.boards import (
    accounts,
    agents,
    exporter,
    network,
    peer,
    proxy,
    sources,
)

_FOLDER = Path(__file__).parents[1] / "dashboards"

FILES: dict[Path, Callable[[], str]] = {
    _FOLDER / "accounts.json": accounts.made,
    _FOLDER / "agent-network.json": agents.made,
    _FOLDER / "exporter.json": exporter.made,
    _FOLDER / "network.json": network.made,
    _FOLDER / "peer.json": peer.made,
    _FOLDER / "proxy.json": proxy.made,
    _FOLDER / "sources.json": sources.made,
}
"""Functions that make the committed files."""

"""Accounts: which of many accounts to look at first."""

from deploy.grafana.board import board
from deploy.grafana.panels import (
    BACKGROUND,
    STATES,
    Column,
    behind,
    look,
    table,
    timeline,
)
from deploy.grafana.queries import STATE, label, named_accounts, of, one

_ALL = "$__all"
"""Grafana's value for "all". It stands for the account of an exporter without names."""


def _linked(expression: str) -> str:
    return label(expression, "account", f"${_ALL}", "account", "")


def _findings(severity: str) -> str:
    return _linked(one(of("api_exporter_attention", f'severity="{severity}"')))


def made() -> str:
    peers = of("netbird_api_peers")
    targets = f"sum by (cluster, account, job, instance) ({peers})"
    age = of("api_exporter_resource_last_success_timestamp_seconds", 'resource="peers"')
    link = (
        "Network",
        "/d/netbird-network?var-account=${__value.raw}&${datasource:queryparam}"
        "&${__url_time_range}",
    )
    alone = {_ALL: ("without a name", "none")}
    return board(
        "accounts",
        "Accounts",
        "State of all accounts, for exporters of several.",
        [
            table(
                "Accounts, the worst first",
                (0, 0, 24, 12),
                "A click on the account opens its network. The age is of the peers.",
                [
                    _linked(f"max by (cluster, account) ({STATE})"),
                    _findings("critical"),
                    _findings("warning"),
                    _linked(one(of("netbird_api_peers", 'connected="true"'))),
                    _linked(one(targets)),
                    _linked(f"time() - {one(age)}"),
                ],
                [
                    Column(
                        "account", "Account", look(link=link, words=alone, minWidth=110)
                    ),
                    Column(
                        "Value #A",
                        "State",
                        look(
                            words=STATES,
                            cellOptions=BACKGROUND,
                            width=135,
                            align="left",
                        ),
                    ),
                    Column("Value #B", "Critical", behind({None: "none", 1: "red"})),
                    Column("Value #C", "Warnings", behind({None: "none", 1: "orange"})),
                    Column("Value #D", "Connected"),
                    Column("Value #E", "Peers"),
                    Column("Value #F", "Age", look("s", decimals=0)),
                ],
                sort={"State": True, "Critical": True},
                empty="No exporter answers",
            ),
            timeline(
                "Accounts over time",
                (0, 12, 24, 10),
                "The state of each account. A gap: no exporter answered.",
                {"{{account}}": named_accounts(f"max by (cluster, account) ({STATE})")},
                STATES,
                empty="No exporter answered",
            ),
        ],
    )

"""One round in front of somebody: `--check` and `--once`. Knows no page."""

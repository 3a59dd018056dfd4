"""Every resource once, in front of somebody: `--check` and `--once`. Knows no page."""

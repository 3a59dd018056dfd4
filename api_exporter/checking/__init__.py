"""The options that check and exit: `--check`, `--once`, `--health` and `--rules`."""

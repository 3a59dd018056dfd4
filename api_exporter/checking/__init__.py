"""The options that check and exit: `--check`, `--once` and `--health`."""

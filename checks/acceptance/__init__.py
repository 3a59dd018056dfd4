"""Checks before a release: other tools, other Pythons, booted systems, long runs."""

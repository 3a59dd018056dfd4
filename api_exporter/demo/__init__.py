"""A simulated NetBird API for `--demo`: recorded responses, served over HTTP."""

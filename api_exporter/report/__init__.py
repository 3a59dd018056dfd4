"""The report: one document of the state of all accounts, and its words.

`/status.json` encodes it, the status page renders it, `--check` prints it as lines.
"""

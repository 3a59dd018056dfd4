"""Refreshes of an account's resources: their schedule, steps, states and log lines.

`fetch` is an argument, so this package does not depend on HTTP.
"""

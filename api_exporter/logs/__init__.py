"""Logs of an account: audit events and the access log, each row written once.

This package is imported only if a setting enables a log. `refresh` passes in
the bodies of audit events. Pages of the access log are requested here.
"""

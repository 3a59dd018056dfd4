"""Logs of an account: audit events and the access log, each row written once.

This package is imported only if a setting enables a log. The refresh passes it bodies
of audit events; it requests pages of the access log itself.
"""

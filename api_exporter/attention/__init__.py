"""Findings: what needs attention in the network, in plain sentences.

Nearly every finding matches an alert and uses the same thresholds, but does not wait.
The finders stand in `subjects`.
"""

"""The audit log of an account as lines of JSON, each event exactly once.

Nothing of it is imported unless EVENTS_FILE is set. It is handed bodies, and asks for
none.
"""

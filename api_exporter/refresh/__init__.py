"""When an account sends requests, how one refresh runs, and which log lines it writes.

It is handed `fetch` and does not depend on HTTP.
"""

"""The HTTP client: requests with deadlines and retries; each failure has a reason.

It does not decode the bodies.
"""

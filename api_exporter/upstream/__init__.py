"""How bytes come: one request, its deadline, retries, and failures with their names.

It knows HTTP and nothing of what the bodies mean.
"""

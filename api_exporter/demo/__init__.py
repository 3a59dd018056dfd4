"""A recorded NetBird management API for `--demo`, and how such an API speaks HTTP."""

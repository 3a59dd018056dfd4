"""Access control: authentication and authorization. It imports no page."""

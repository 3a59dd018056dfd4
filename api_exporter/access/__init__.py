"""Access control: who may come in, and see what. Knows no page."""

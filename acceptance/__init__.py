"""What is tried before a release: other tools, other Pythons, boots, minutes."""

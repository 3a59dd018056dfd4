"""How bytes leave: listening, connections, readers and their limits. Knows no page."""

"""Rendering: families to text, pages and slices; independent of NetBird and sockets."""

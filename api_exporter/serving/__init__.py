"""The HTTP server: listening, connections, requests and their limits."""

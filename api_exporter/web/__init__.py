"""The pages, one per file. A page sends no request to the NetBird API."""

"""Families to text to pages to slices that are sent. Knows no subject and no socket."""

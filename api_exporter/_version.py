"""Provides api_exporter version information."""

# This file is auto-generated! Do not edit!
# Use `python -m incremental.update api_exporter` to change this file.

from incremental import Version

__version__ = Version("api_exporter", 0, 1, 0)
__all__ = ["__version__"]

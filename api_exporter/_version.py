"""
Provides api_exporter version information.
"""

# This file is auto-generated! Do not edit!
# Use `incremental` to change this file.

from incremental import Version

__version__ = Version("api_exporter", 1, 0, 0)
__all__ = ["__version__"]

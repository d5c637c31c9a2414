"""Successful conversion responses: files, ZIPs, report headers."""

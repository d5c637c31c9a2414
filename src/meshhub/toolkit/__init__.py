"""Helpers for plug-in authors: welding, topology, polygons, text columns, safe archives."""

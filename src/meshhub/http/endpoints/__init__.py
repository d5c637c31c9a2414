"""Endpoints, one module per resource, and the access check that runs before them."""

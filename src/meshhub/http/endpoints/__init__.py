"""One module per resource, and the guard that every request passes first."""

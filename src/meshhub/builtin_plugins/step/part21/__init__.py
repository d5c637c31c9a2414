"""Models as the text of an ISO 10303-21 file."""

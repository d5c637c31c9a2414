"""From a request body to files and a conversion request."""

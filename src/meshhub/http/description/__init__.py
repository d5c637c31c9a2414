"""Description of the service: the OpenAPI document and its page."""

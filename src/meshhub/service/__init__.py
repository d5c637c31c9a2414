"""Configuration of the service by its operator: settings and API keys."""

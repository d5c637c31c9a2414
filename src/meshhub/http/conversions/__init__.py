"""Conversions of requests on the registry's engine, and the probe of the workers."""

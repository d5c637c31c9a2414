"""Run conversions for requests on the registry's engine, and probe that it works."""

"""Responses that carry files, and the reports beside them."""

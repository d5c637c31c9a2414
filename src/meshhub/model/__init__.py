"""Data that flows through a conversion, and data that plug-ins declare.

This package imports nothing from its modules: the declarations load without numpy, `scene` needs it.
"""

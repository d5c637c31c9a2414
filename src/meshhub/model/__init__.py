"""Data that flows through a conversion, and data that plug-ins declare.

Import the modules of this package one by one: all except `scene` load without numpy.
"""

"""The formats of `plugins/` beside other programs."""

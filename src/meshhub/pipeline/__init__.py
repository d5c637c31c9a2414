"""From plug-ins to a report: load, collect, resolve, execute, inspect."""

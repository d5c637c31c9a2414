"""Where a chain runs. An engine is a constructor argument of the registry: there is exactly one.

InProcess   in the calling process: the fastest, deadlines take effect between steps, a crash is yours
Isolated    a process of its own for every job, killed at the deadline or when the caller leaves
"""

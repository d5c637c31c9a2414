"""Admission control: client addresses, rate limits, failed keys, conversion slots, threads, folders, disk."""

"""Soak test: a real `meshhub serve` under mixed traffic from many clients; checks every response and the memory."""

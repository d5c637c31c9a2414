"""A soak: a real `meshhub serve` under mixed traffic from many clients, every answer checked, memory watched."""

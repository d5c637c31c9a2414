"""Who may use the service now: addresses, rates, failed keys, slots, threads, disk."""

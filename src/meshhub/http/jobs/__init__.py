"""Jobs in the service: their submission, the runner, their events, and webhooks."""

"""What an operator configures: settings and API keys."""

"""Generates what the services of one machine are configured with: settings, users of the bus, passwords."""

"""Webhooks: what the bus says becomes deliveries, and deliveries become requests to receivers."""

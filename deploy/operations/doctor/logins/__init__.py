"""Where users come from: the provider that they log in at, and the one that makes them by SCIM."""

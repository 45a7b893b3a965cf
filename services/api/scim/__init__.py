"""SCIM 2.0 (RFC 7643 and 7644): a provider of identities makes, changes and deactivates users and groups."""

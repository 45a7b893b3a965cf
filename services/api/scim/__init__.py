"""SCIM 2.0 (RFC 7643 and 7644): a provider of identities makes, changes and deactivates users and groups.

Schemas, paths, filters and what a PATCH does to a user are those of scim2-models, which the first call loads. What
providers send and it does not take is our own, and so is all that concerns the database.
"""

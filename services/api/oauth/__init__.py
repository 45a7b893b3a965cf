"""OAuth 2.0 for providers of identities that want it for SCIM: their clients, codes and tokens (RFC 6749)."""

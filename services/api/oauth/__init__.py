"""OAuth 2.0 for providers of identities that want it for SCIM: their clients, codes and tokens (RFC 6749).

The token endpoint is our own: Authlib, the library that would be used instead, has servers for Flask and Django, and
none for Starlette (https://docs.authlib.org).
"""

"""Login at an OpenID Connect provider: the authorization code flow, with PKCE where it is offered."""

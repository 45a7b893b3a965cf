"""Authentication and authorization: who is calling, and what they may do."""

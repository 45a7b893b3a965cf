"""Rights of users: permissions, roles, and what each action needs by type of authorization."""

"""The slots of a pool: what its nodes have, who holds them, and what quotas allow."""

"""What may start in other pools than its own (resources.fallback_pools)."""

"""Pages of the documentation, followed on a whole system."""

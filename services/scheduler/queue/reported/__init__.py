"""What launchers report of their pools, as far as plans depend on it."""

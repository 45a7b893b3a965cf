"""How the database is reached: where it is, and whether it answers those who have no pool on it."""

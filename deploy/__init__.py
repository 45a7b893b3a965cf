"""How the system gets to where it runs."""

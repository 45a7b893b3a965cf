"""How the bus changes its number of servers."""

"""How much may be held together, by whom: one counter per limit."""

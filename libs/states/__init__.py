"""State machines as tables: one file per noun; whichever service holds the row lock uses the same table. Pure."""

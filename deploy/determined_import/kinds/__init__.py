"""What is imported: each table of this system as a query over the old database, one module per noun."""

"""How services import libraries."""

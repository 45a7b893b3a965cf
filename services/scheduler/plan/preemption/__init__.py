"""Who is asked to leave, and for whom."""

"""Report of simulations: measures, a table for people, JSON for programs, and plots."""

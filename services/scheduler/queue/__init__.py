"""The queue of a pool: its rows as the planner sees them, and the plan carried out."""

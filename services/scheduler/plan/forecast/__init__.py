"""What will happen in a queue if nobody new comes: the planner, in virtual time."""

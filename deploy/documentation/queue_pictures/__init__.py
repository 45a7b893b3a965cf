"""Pictures of small queues in virtual time: the planner decides what happens in them."""

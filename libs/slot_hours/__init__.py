"""Slot-hours that are used in a calendar period: for plans that limit them, and for those who look at limits."""

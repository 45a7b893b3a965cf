"""The state of an allocation (pure): what is observed, what is intended, and the status that follows from both."""

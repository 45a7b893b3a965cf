"""The state of an allocation (pure): what was seen of it, what is intended, and the status that follows from both."""

"""Rows under lock, and the messages that commit with them: the base of every transaction of the scheduler."""

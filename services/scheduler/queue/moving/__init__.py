"""Trials that are moved to make room: what plans have to know of those that have not started again."""

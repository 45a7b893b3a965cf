"""Contracts on the bus: one file of frozen structs per noun; ``subjects.py`` alone spells subject names.

Everything here is public and versioned. Receivers ignore unknown fields, and new fields have defaults, so that services
of neighbouring releases understand one another.
"""

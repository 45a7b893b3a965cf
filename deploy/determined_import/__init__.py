"""``resolute import``: brings people, their work and its results from an installation of Determined 0.38.

The old database is only ever read. What was read is written in batches, each with how far it came in one transaction,
so that an import that was cut off goes on where it was.
"""

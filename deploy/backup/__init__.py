"""``resolute backup | restore``: the database and the streams of an installation in one file, taken while it runs.

The streams come first and the database after them: a log line that leaves its stream in between is in the database
then, and one that is in both is known by its number when it is stored again.
"""

"""Runs task containers as local processes, each with a private ``/run/determined``: for laptops and single machines."""

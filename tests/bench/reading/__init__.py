"""Reads of the api, each beside the statements it is made of."""

"""Keeps the processes of one state folder running, and finds and ends them."""

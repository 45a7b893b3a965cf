"""Requests to the scheduler beside those to reconcile, which are answered on the reply subject."""

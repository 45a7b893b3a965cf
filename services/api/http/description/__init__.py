"""The description of the REST interface as OpenAPI 3.1: what the rows of the table of routes mean to those outside.

Nothing of it is imported before the first request for it; few replicas are ever asked.
Source: https://spec.openapis.org/oas/v3.1.0
"""

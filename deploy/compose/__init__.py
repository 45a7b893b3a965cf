"""Prepares what the containers of ``docker-compose.yml`` begin with."""

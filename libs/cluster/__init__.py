"""Configuration that an administrator writes once for all services: pools, defaults of tasks, storage. Pure."""

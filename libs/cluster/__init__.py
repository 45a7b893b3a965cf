"""What an administrator configures once for all services: pools, defaults of tasks, storage. Pure."""

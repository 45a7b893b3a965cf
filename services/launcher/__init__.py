"""How it runs: one launcher per resource pool makes its cluster, or this machine, what the orders of the pool say."""

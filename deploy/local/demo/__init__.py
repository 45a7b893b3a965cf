"""Shows the whole system at work: ``python -m deploy.local.demo`` runs a real search and reports it."""

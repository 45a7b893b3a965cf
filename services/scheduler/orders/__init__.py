"""Orders to launchers: what an allocation needs to run, written once and repaired when it is lost."""

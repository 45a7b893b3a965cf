"""Contents of any task container, whatever runs it: environment, files and command (pure)."""

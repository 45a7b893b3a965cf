"""What an administrator does with an installation that runs: look, check, upgrade."""

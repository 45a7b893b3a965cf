"""Live updates: what ``/stream`` tells its subscribers of projects, models and their versions."""

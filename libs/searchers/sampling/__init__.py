"""Draw hyperparameters and seeds from one random stream, the same for the same seed."""

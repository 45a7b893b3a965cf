"""Tasks that are no trials: notebooks, shells, commands, TensorBoards, checkpoint GC. They run once."""

"""Tasks that are no trials: notebooks, shells, commands, TensorBoards, checkpoint GC, which run once; generic tasks."""

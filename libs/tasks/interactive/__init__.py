"""Notebooks, TensorBoards, shells and commands: their configuration, and what their containers are made of. Pure.

``assembly`` makes the final configuration of the layers (``layers`` reads one, ``overlay`` puts one over another,
``defaults`` is what lies below), ``validation`` refuses what cannot be; ``containers`` and ``tensorboard_sources`` say
what runs. Source: docs/reference/tasks-and-cli.md 2 and 3.
"""

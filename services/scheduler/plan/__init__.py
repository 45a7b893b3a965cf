"""Who starts next, and where: a pure function of a snapshot of one pool. The same snapshot gives the same plan."""

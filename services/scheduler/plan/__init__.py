"""Plan of one pool, who starts next and where: a pure function of a snapshot. The same snapshot gives the same plan."""

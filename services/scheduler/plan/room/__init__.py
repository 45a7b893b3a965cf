"""Units of nodes: who holds them, for whom they are kept, and which of them a pod gets."""

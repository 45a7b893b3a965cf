"""Engine: virtual time, the slots of the nodes, and what a policy's decisions do to them."""

"""When what waits is expected to start: estimates that are kept up to date beside the plans, and never delay them."""

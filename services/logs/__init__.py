"""Every line once: takes log lines in from fluent-bit, keeps them in order and exactly once, forgets them in time."""

"""Times, durations, names and numbers as people write and read them."""

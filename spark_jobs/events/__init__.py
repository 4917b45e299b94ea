"""Facts as sorted events: read, decoded, shuffled, sorted, written."""

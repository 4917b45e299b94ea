"""Great Expectations: the suites and their rule types."""

"""Great Expectations: the suites and their rule types. Knows no store."""

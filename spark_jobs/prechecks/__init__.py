"""Rules answered from files before Great Expectations is asked."""

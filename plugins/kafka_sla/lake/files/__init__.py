"""Single files of a store: written for good, checked, exported."""

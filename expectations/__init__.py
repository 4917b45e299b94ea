"""Expectation suites, one `<table>.json` per published table; a package only so that the wheel ships them."""

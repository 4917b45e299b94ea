"""Windows, segments and observed positions."""

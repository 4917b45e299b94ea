"""Reports, digests and charts from published rows. Sends nothing."""

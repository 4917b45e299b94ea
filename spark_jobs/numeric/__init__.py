"""Pure NumPy: timelines, histograms, offset ranges, scans."""

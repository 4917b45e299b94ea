"""Published rows, read and added up for those who show figures. Changes nothing."""

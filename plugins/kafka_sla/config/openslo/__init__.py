"""SLAs as OpenSLO documents, in and out. Pure; reads and writes no file."""

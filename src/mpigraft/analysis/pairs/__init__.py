"""Find slow nodes and links in matrices of latency and bandwidth between nodes."""

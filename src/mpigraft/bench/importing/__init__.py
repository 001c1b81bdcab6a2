"""Results that were measured elsewhere."""

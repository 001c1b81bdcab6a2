"""Words, numbers and counts as reports print them."""

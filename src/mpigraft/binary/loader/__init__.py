"""What the dynamic loader would map and bind, without running anything."""

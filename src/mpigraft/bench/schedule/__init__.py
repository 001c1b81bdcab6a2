"""A campaign's plan: configurations, layouts, sizes and the order of launches."""

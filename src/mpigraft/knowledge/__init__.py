"""Facts about MPIs as data: what to set, what it needs, the sign that it ran, what goes wrong."""

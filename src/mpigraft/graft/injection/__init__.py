"""What goes into a guest: the loader simulated until nothing is missing."""

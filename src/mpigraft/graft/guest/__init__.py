"""What was built elsewhere: a program, a container image, and what a command in it starts."""

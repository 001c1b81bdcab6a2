"""The proof of an injection: one program of the stack on two ranks."""

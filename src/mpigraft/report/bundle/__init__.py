"""A campaign as an archive for a paper or a vendor's ticket, with nothing private in it."""

"""A profile for people: text of 80 columns and an HTML page; and a record's exchanges."""

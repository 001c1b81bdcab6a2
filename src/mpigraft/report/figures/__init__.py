"""Pictures of a report, and the HTML elements that all of them are made of."""

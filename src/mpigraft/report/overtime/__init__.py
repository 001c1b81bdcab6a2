"""Campaigns of different times, as text, Markdown, JSON and a page."""

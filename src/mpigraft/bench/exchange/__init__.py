"""Campaigns as tables for other programs: CSV, JSON, Parquet."""

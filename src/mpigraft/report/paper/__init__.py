"""Figures of a report for a paper, as SVG and PDF."""

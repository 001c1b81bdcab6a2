"""Numbers alone: bootstrap intervals, serial dependence, steps of a clock."""

"""The scores, one file each. `roarfast.metrics.get_score` imports them by name."""

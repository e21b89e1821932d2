"""Scores without retraining, and what removal scores are made of."""

"""The readable definition of every op, in NumPy and SciPy: the oracle of the tests. Needs scipy."""

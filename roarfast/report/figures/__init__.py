"""The figures of the report, one module per subject."""

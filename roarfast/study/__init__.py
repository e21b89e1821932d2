"""Studies: a config file becomes cells, the executor runs them, the store keeps what they found."""

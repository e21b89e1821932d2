"""Studies on a Ray cluster: `roarfast run study.toml --ray auto`."""

"""What several tests share. pytest puts `tests/` on the path: `from helpers.image_cases import SHAPES`."""

"""`python -m roarfast`: the same as the `roarfast` command."""

from roarfast.cli import main

if __name__ == "__main__":
    main()

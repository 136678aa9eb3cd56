"""`python -m ragaliq`: the same as the command `ragaliq`."""

from ragaliq.cli import main

if __name__ == "__main__":
    main()

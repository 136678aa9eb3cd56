"""`python -m ragaliq.cli`."""

from ragaliq.cli import main

if __name__ == "__main__":
    main()

"""`python -m diskbook`: the command line, for where the program `diskbook` is not on PATH."""

from diskbook.cli import main

if __name__ == "__main__":
    main()

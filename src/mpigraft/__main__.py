"""`python -m mpigraft`: the command, where its script is not in PATH."""

from mpigraft.cli.entry import main

if __name__ == "__main__":
    main()

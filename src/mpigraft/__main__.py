"""`python -m mpigraft`: the command, where its script is not in PATH."""

from mpigraft.cli import entry

if __name__ == "__main__":
    entry.main()

"""`python -m consilience`: the command line."""

from consilience.cli.main import main

if __name__ == "__main__":
    main()

"""`python -m ebbtide` is the command `ebbtide`."""

from ebbtide.cli.app import main

if __name__ == "__main__":
    main()

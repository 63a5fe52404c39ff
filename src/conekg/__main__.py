"""`python -m conekg` is the command `conekg`."""

from conekg.cli.main import main

main()

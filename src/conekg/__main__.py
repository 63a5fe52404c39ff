"""The command `conekg`, which is `python -m conekg` too."""

import sys


def run() -> None:
    """Load the command line and run it; Ctrl-C while it loads ends it without a traceback."""
    try:
        from conekg.cli.main import main
    except KeyboardInterrupt:
        sys.exit(130)  # as of every command that Ctrl-C stops
    main()


if __name__ == "__main__":
    run()

"""``python -m p4perf`` is the ``p4perf`` command."""

from p4perf.cli import main

if __name__ == "__main__":
    main()

"""The server that commands of tests are forked from."""

import sys

from support import command


def missing():
    raise SystemExit(sum(name not in sys.modules for name in command.PRELOADED))


def test_everything_is_loaded_before_a_command_is_forked():
    """The server leaves out in silence what it cannot find, and then every command loads that again."""
    child = command._context().Process(target=missing)
    child.start()
    child.join()
    assert child.exitcode == 0

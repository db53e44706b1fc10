"""The command durable-pg, also as python -m durable_pg: what a signal does from the first moment to the last."""

import os
import signal
import sys
from types import FrameType

# Ctrl-C, a job that is called off, a terminal that is closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Run the command line. A signal ends it with 130 and never with a traceback."""
    # One that is ignored (nohup) stays so.
    ours = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in ours:
        signal.signal(number, _leave)
    # It takes a while, and nothing is begun yet.
    from durable_pg.cli import app  # noqa: PLC0415

    interrupted = ending = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        if not ending:
            signal.default_int_handler(number, frame)

    for number in ours:
        signal.signal(number, interrupt)
    code: str | int | None = 130
    try:
        app(prog_name="durable-pg")
    except SystemExit as end:
        ending = True
        code = end.code
    except KeyboardInterrupt:
        ending = True
    # From here on only what is registered at exit runs, such as the removal of an embedded server.
    signal.pthread_sigmask(signal.SIG_BLOCK, ours)
    # A second Ctrl-C may have cut short what the command had to say, which makes it exit with 1.
    sys.exit(130 if interrupted else code)


def _leave(*_: object) -> None:
    os.write(2, b"interrupted: nothing was begun\n")
    os._exit(130)


if __name__ == "__main__":
    main()

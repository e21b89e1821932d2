"""Run a script or module with other packages patched: `python -m roarfast.compat --patch quantus,grad-cam script.py`."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from roarfast.compat import _peers, enable, status
from roarfast.compat._options import MODES, NOISES


def main(argv: list[str] | None = None) -> None:
    """Parses the options before the script; everything after it is the script's own."""
    parser = argparse.ArgumentParser(
        prog="python -m roarfast.compat", description="Run a script with other packages made fast."
    )
    parser.add_argument("--patch", required=True, metavar="NAMES", help=f"comma-separated: {', '.join(_peers.MODULES)}")
    parser.add_argument("--mode", choices=MODES, default="faithful", help="the peer's numbers, or its faults mended")
    parser.add_argument("--noise", choices=NOISES, default="peer", help="the peer's random numbers, or ours (faster)")
    parser.add_argument("--tol", type=float, default=None, help="largest error of an imputed value (default 1e-5)")
    parser.add_argument("--seed", type=int, default=0, help="for --noise philox")
    parser.add_argument("--status", action="store_true", help="print what was fast at the end, to standard error")
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module, as in python -m")
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    try:
        enable(*options.patch.split(","), mode=options.mode, noise=options.noise, tol=options.tol, seed=options.seed)
    except (ValueError, ModuleNotFoundError) as error:
        parser.error(str(error))
    sys.argv = [options.script, *options.args]
    try:
        if options.module:
            sys.path.insert(0, "")
            runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(options.script).resolve().parent))
            runpy.run_path(options.script, run_name="__main__")
    finally:
        if options.status:
            print(status(), file=sys.stderr)


if __name__ == "__main__":
    main()

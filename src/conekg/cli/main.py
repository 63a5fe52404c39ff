"""The command `conekg`: its help page, its subcommands, and the reporting of errors.

Each subcommand has a module of its own and imports heavy libraries inside its function, so that
`conekg --help` is quick. To add one: write `cli/<name>.py`, import it here, and add one line to the
registrations below.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from conekg.cli import (
    ask,
    calibrate,
    demo,
    evaluate,
    fit,
    graph,
    queries,
    query,
    reproduce,
    sample,
    serve,
    train,
)
from conekg.cli.console import escape_what_cannot_be_printed, print_error, print_text
from conekg.cli.idle import let_idle_threads_sleep
from conekg.cli.lost_interrupt import raise_lost_interrupts
from conekg.errors import ConeKGError, lack_of_memory
from conekg.version import VERSION


class ReportingGroup(TyperGroup):
    """A command group that reports what a user can mend in one message, with exit code 2.

    That is a mistake, a full disk or a lack of memory.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command, and report its ConeKGError, or that a disk or memory is full."""
        try:
            return super().invoke(ctx)
        except ConeKGError as error:
            print_error(error)
            raise typer.Exit(2) from None
        except OSError as error:
            if error.errno in _DISK_FULL:
                where = f" to write {error.filename}" if error.filename else ""
                disk_full = ConeKGError(
                    f"there is no space left{where}", hint="free some space and try again"
                )
                print_error(disk_full)
                _discard_output()
            elif error.errno in _NOT_ALLOWED and error.filename:
                print_error(ConeKGError(f"{error.filename}: {error.strerror}"))
            else:
                raise
            raise typer.Exit(2) from None
        except (MemoryError, RuntimeError) as error:
            detail = lack_of_memory(error)
            if detail is None:
                raise
            hint = "end other programs that use much, or take a machine with more"
            if "CUDA" in detail:
                hint += (
                    "; to use the CPU instead of the GPU, set CUDA_VISIBLE_DEVICES= (to nothing)"
                )
            print_error(
                ConeKGError(f"there is not enough memory{detail and ': '}{detail}", hint=hint)
            )
            raise typer.Exit(2) from None


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
"""The system's errors for a path that cannot be read or written, such as for lack of permission."""


def _discard_output() -> None:
    """Discard output that is still buffered; flushing it at exit would fail a second time."""
    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (to the end)


app = typer.Typer(
    cls=ReportingGroup,
    name="conekg",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Start with `conekg demo`. A graph is geography (built in), the name of a
public benchmark (nell995, fb15k, fb15k-237, wn18rr-qa), a folder, or a file of triples. Every
command explains itself with --help.""",
)

# One line a command or a group of commands, in the order of the help page.
app.command("demo", rich_help_panel="Start here")(demo.demo)
app.command("fit", rich_help_panel="Start here")(fit.fit)
app.command("ask", rich_help_panel="Start here")(ask.ask)
app.command("serve", rich_help_panel="Start here")(serve.serve)
app.add_typer(graph.app, name="graph", rich_help_panel="Graphs and queries")
app.command("explain-query", rich_help_panel="Graphs and queries")(query.explain_query)
app.command("sample", rich_help_panel="Graphs and queries")(sample.sample)
app.add_typer(queries.app, name="queries", rich_help_panel="Graphs and queries")
app.command("train", rich_help_panel="Models")(train.train)
app.command("evaluate", rich_help_panel="Models")(evaluate.evaluate)
app.command("calibrate", rich_help_panel="Models")(calibrate.calibrate)
app.command("reproduce", rich_help_panel="Models")(reproduce.reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(f"conekg {VERSION}")
        raise typer.Exit


@app.callback()
def _conekg(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Answer logical questions over incomplete knowledge graphs.

    conekg learns cone embeddings of a graph of facts and answers questions made of
    and, or, not and "there is". It ranks the answers and marks which of them follow from
    known facts and which are predicted.
    """


def main() -> None:
    """Entry point of the command line."""
    let_idle_threads_sleep()
    escape_what_cannot_be_printed()
    raise_lost_interrupts()
    app()

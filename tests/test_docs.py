"""The book is true: its commands and code run, its links lead somewhere, nothing is left out."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from book import (
    DOCS,
    ROOT,
    Session,
    blocks_of,
    check_conekg,
    check_options,
    inline_commands,
    shell_commands,
    steps_of,
    words_of,
)
from conekg.cli.main import app
from conekg.model.catalog import MODELS

PAGES = sorted(DOCS.glob("*.md"))
RUN = ("tutorial.md", "http-api.md", "run-folder.md", "researchers.md", "query-language.md")
"""Pages whose commands and code are run, in this order and in one folder."""

PARSED_ONLY = {
    "README.md": "full-size runs, and the first steps that the tutorial goes",
    "performance.md": "measurements on a GPU",
    "results.md": "full-size runs",
    "other-runs.md": "full-size runs",
    "recipe-search.md": "trials of many hours",
}
"""Pages whose commands take too long or a GPU, and why; they are parsed all the same."""

DATA = ("text", "ebnf", "sparql", "json", "toml", "{toctree}", "{eval-rst}")
"""Languages of blocks that are no commands. Queries are tried by tests/query."""
COMMANDS = ("console", "python", "pycon")
SCRIPTS = ("sh", "bash")


def page_ids(page: Path) -> str:
    return page.name


@pytest.fixture
def same_models() -> Iterator[None]:
    """Take a model that a page adds out of the catalog again."""
    before = dict(MODELS)
    yield
    MODELS.clear()
    MODELS.update(before)


@pytest.mark.slow
def test_the_book_runs(tmp_path: Path, same_models: None) -> None:
    """One test for all pages: they share the run of the tutorial, which takes the longest."""
    session = Session(tmp_path)
    with chdir(tmp_path):
        for name in RUN:
            run = list(session.read(DOCS / name))
            assert {"console", "python"} & {block.language for block in run}, name
    assert (tmp_path / "families-run" / "evaluation.json").is_file()
    assert (tmp_path / "families-run" / "calibration.json").is_file()


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=page_ids)
def test_every_block_is_run_parsed_or_data(page: Path) -> None:
    is_run = page.name in RUN
    for block in blocks_of(page):
        if block.language == "json":
            json.loads(block.body)
        elif block.language == "toml":
            tomllib.loads(block.body)
        if block.language in DATA or (block.language in COMMANDS and is_run and not block.not_run):
            continue
        assert block.language in (*COMMANDS, *SCRIPTS), f"{block.place}: {block.language!r}"
        reason = block.not_run or PARSED_ONLY.get(page.name)
        assert reason, (
            f"{block.place} is not run: make it a console block of a page that is, or say above "
            "it *Not run by the tests: why*"
        )
        if block.language == "python":
            compile(block.body, block.place, "exec")
            continue
        for command in shell_commands(block):
            for words in words_of(command):
                check_program(words, block.place)


def check_program(words: list[str], place: str) -> None:
    """That what a command line calls exists, with those options where it is ours."""
    match words:
        case ["conekg", *_]:
            try:
                check_conekg(words)
            except Exception as error:
                raise AssertionError(f"{place}: {' '.join(words)}: {error}") from error
        case ["python", script, *_] if script.endswith(".py"):
            assert (ROOT / script).is_file(), f"{place}: no {script}"
        case ["make", target]:
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{place}: make {target}"
        case ["curl" | "pip" | "git" | "tensorboard", *_]:
            pass
        case _:
            raise AssertionError(f"{place}: what is {' '.join(words)!r}?")


@pytest.mark.parametrize(
    "command",
    [
        "conekg fit",
        "conekg fit x --out y --stepz 3",
        "conekg fitt x",
        "conekg graph",
        "make nothing",
    ],
)
def test_wrong_commands_are_noticed(command: str) -> None:
    with pytest.raises(AssertionError):
        check_program(command.split(), "here")


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=page_ids
)
def test_commands_in_running_text_exist(page: Path) -> None:
    for command in inline_commands(page):
        try:
            check_options(shlex.split(command))
        except AssertionError as error:
            raise AssertionError(f"{page.name}: `{command}`: {error}") from error


@pytest.mark.parametrize(
    "command", ["conekg fitt x", "conekg graph biuld", "conekg train x --recipee small"]
)
def test_wrong_commands_in_running_text_are_noticed(command: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"Then `{command}` does it.\n\n```text\n`conekg not here`\n```\n")
    assert inline_commands(page) == [command]
    with pytest.raises(AssertionError, match="has no"):
        check_options(command.split())


# --- links -----------------------------------------------------------------------------------

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def prose_of(page: Path) -> str:
    """The text of a page without its blocks and its inline code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "", text)


def anchors_of(page: Path) -> set[str]:
    """The anchors that a code host and Sphinx give to a page's headings."""
    headings = re.findall(r"^#{1,3} (.+)$", page.read_text("utf-8"), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in plain}


def links() -> Iterator[tuple[Path, str]]:
    for page in (*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for target in LINK.findall(prose_of(page)):
            if not re.match(r"^(https?|mailto):", target):
                yield page, target


@pytest.mark.parametrize(("page", "target"), list(links()), ids=str)
def test_links_lead_somewhere(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    place = (page.parent / path).resolve() if path else page
    assert place.exists()
    if anchor:
        assert anchor in anchors_of(place)


@pytest.mark.parametrize("picture", sorted((DOCS / "images").iterdir()), ids=page_ids)
def test_pictures_are_small(picture: Path) -> None:
    assert picture.stat().st_size < 256_000


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_recorded_results_are_drawn_where_a_page_shows_them(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    make_pictures = script("make_pictures")
    pictures = make_pictures.recorded_pictures()
    assert "geography-cone-small-seed0-membership.png" in pictures
    shown = {Path(target).name for _, target in links()}
    assert set(pictures) <= shown & {picture.name for picture in (DOCS / "images").iterdir()}
    for name, record in pictures.items():
        if record.suffix == ".json":
            make_pictures.draw_recorded_plots(record, tmp_path / name)
            assert (tmp_path / name).stat().st_size > 1000


# --- commands and options ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def make_cli() -> ModuleType:
    return script("make_cli")


def test_the_command_reference_is_up_to_date(make_cli: ModuleType) -> None:
    assert (DOCS / "cli.md").read_text("utf-8") == make_cli.page(), "run python docs/make_cli.py"


def test_every_option_of_every_help_page_is_documented() -> None:
    page = (DOCS / "cli.md").read_text("utf-8")
    sections = re.split(r"^#+ (conekg.*)$", page, flags=re.MULTILINE)[1:]
    documented = dict(zip(sections[::2], sections[1::2], strict=True))
    to_visit = ["conekg"]
    while to_visit:
        words = to_visit.pop()
        arguments = [*words.split()[1:], "--help"]
        shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"}).output
        options = set(re.findall(r"^│ [* ]+(--[a-z-]+)", shown, re.MULTILINE))
        for option in options - {"--help", "--install-completion", "--show-completion"}:
            assert f"`{option}`" in documented[words], f"{words} {option}"
        if "COMMAND [ARGS]" in shown:
            panels = re.findall(r"^│ ([a-z][a-z-]*) {2,}", shown, re.MULTILINE)
            assert panels
            to_visit += [f"{words} {name}" for name in panels]
    assert len(documented) > 15


# --- architecture ------------------------------------------------------------------------------

PATH = re.compile(r"(?<![\w./-])([\w-]+(?:/[\w-]+)*(?:\.(?:py|toml|md)|/))(?![\w/])")


def paths_of_the_plan() -> Iterator[Path]:
    """Every path that the tree of architecture.md names, made whole by its indentation."""
    blocks = blocks_of(DOCS / "architecture.md")
    tree = next(block.body for block in blocks if block.body.startswith("src/conekg/"))
    root = folder = ROOT
    for line in tree.splitlines():
        depth = len(line) - len(line.lstrip())
        first = line.split()[0]
        if depth == 0:
            root = folder = ROOT / first
        elif depth == 2:
            folder = root / first if first.endswith("/") else root
        elif depth == 4 and first.endswith("/"):
            yield folder / first
            line = line.replace(first, "")
        named = PATH.findall(line)
        if depth in (0, 2) and first.endswith("/"):
            yield folder
            named = named[1:]
        for name in named:
            below = [folder / name, folder / "kernels" / name]
            yield next((path for path in below if path.exists()), below[0])


def test_the_plan_names_only_what_exists() -> None:
    named = set(paths_of_the_plan())
    assert len(named) > 100
    assert [str(path) for path in named if not path.exists()] == []


def test_paths_in_the_text_of_the_plan_exist() -> None:
    text = re.sub(
        r"^```.*?^```$", "", (DOCS / "architecture.md").read_text("utf-8"), flags=re.M | re.S
    )
    named = re.findall(r"`([\w/-]+\.py|[\w-]+/[\w/-]*)`", text)
    assert named
    for path in named:
        assert (ROOT / path).exists() or (ROOT / "src" / "conekg" / path).exists(), path


def test_the_plan_draws_the_folders_in_the_order_of_the_walk() -> None:
    from test_layers import LAYERS

    text = (DOCS / "architecture.md").read_text("utf-8")
    walk = next(line for line in text.splitlines() if line.startswith("files ─▶"))
    assert tuple(walk.split(" ─▶ ")[1:]) == LAYERS


# --- the site ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("sphinx") is None or importlib.util.find_spec("furo") is None:
        pytest.skip("needs the extra docs")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    built = subprocess.run(
        [*command, str(DOCS), str(tmp_path / "html")], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "html" / "tutorial.html").is_file()
    commands = (tmp_path / "html" / "cli.html").read_text("utf-8")
    assert "overrides --config" in commands, "options keep their two hyphens"


@pytest.mark.parametrize(
    "text",
    [
        "- a list\n\n  ```console\n  $ conekg fitt\n  ```\n",
        "~~~console\n$ conekg fitt\n~~~\n",
        "````console\n$ conekg fitt\n````\n",
        "``` console\n$ conekg fitt\n```\n",
        "```console linenos\n$ conekg fitt\n```\n",
        "So:\n\n    conekg fitt\n",
        "```console\n$ conekg fit x --out y\n",
    ],
    ids=["indented", "tildes", "four", "space", "attribute", "by indentation", "open"],
)
def test_no_block_escapes(text: str, tmp_path: Path) -> None:
    """A block in a form that this module does not read would never be run."""
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError, match=r"page\.md"):
        blocks_of(page)


def test_lists_may_go_on_below_each_other(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("- one\n  - two\n    - three\n\n```sh\nmake\n```\n")
    assert [block.language for block in blocks_of(page)] == ["sh"]


def test_sessions_are_read_as_they_look() -> None:
    steps = steps_of("$ conekg a \\\n    --b\nprinted\n$ conekg c\n")
    assert [step.command for step in steps] == ["conekg a --b", "conekg c"]
    assert steps[0].printed == "printed\n"
    assert words_of("KEY=1 conekg serve 'a & b' --port 1 & curl x") == [
        ["conekg", "serve", "a & b", "--port", "1"],
        ["curl", "x"],
    ]


def test_bash_is_there() -> None:
    assert shutil.which("bash"), "the sessions of the book need bash"

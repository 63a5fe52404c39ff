"""The book is right: its commands and code run, its links work, and it names every option."""

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
from typer.main import get_command
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
    "README.md": "full-size runs, and first steps that the tutorial runs",
    "performance.md": "measurements on a GPU",
    "results.md": "full-size runs",
    "other-runs.md": "full-size runs",
    "recipe-search.md": "trials of many hours",
}
"""Pages whose commands are only parsed, because they take too long or a GPU, and what they are."""

DATA = ("text", "ebnf", "sparql", "json", "toml", "{toctree}", "{eval-rst}")
"""Languages of blocks without commands. The tests of the query language run the queries."""
COMMANDS = ("console", "python", "pycon")
SCRIPTS = ("sh", "bash")


def page_ids(page: Path) -> str:
    return page.name


@pytest.fixture
def same_models() -> Iterator[None]:
    """Remove the model that a page adds to the catalog afterwards."""
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
    """Check that a program of a command line exists; of conekg, also the arguments."""
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
        case ["curl" | "pip" | "git" | "tensorboard" | "nvidia-cuda-mps-control", *_]:
            pass
        case ["wait"] | ["echo", _]:
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
def test_wrong_commands_fail_the_check(command: str) -> None:
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
def test_wrong_commands_in_running_text_fail_the_check(command: str, tmp_path: Path) -> None:
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
def test_links_lead_to_an_existing_file_and_heading(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    place = (page.parent / path).resolve() if path else page
    assert place.exists()
    if anchor:
        assert anchor in anchors_of(place)


@pytest.mark.parametrize("picture", sorted((DOCS / "images").iterdir()), ids=page_ids)
def test_pictures_are_small_and_shown(picture: Path) -> None:
    assert picture.stat().st_size < 256_000
    assert any(
        f"images/{picture.name})" in page.read_text() for page in (ROOT / "README.md", *PAGES)
    )


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
    to_visit, found = ["conekg"], 0
    while to_visit:
        words = to_visit.pop()
        arguments = [*words.split()[1:], "--help"]
        shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"}).output
        options = set(re.findall(r"^│ [* ]*(--[a-z-]+)", shown, re.MULTILINE))
        assert "--help" in options, "the options of this help page are not found"
        for option in options - {"--help", "--install-completion", "--show-completion"}:
            assert f"`{option}`" in documented[words], f"{words} {option}"
            found += 1
        if "COMMAND [ARGS]" in shown:
            panels = re.findall(r"^│ ([a-z][a-z-]*) {2,}", shown, re.MULTILINE)
            assert panels
            to_visit += [f"{words} {name}" for name in panels]
    assert len(documented) > 15
    assert found > 100


# --- architecture ------------------------------------------------------------------------------

PATH = re.compile(r"(?<![\w./-])([\w-]+(?:/[\w-]+)*(?:\.(?:py|toml|md)|/))(?![\w/])")


def paths_of_the_tree() -> Iterator[Path]:
    """Every path named by the tree in architecture.md; its indentation tells the folder."""
    blocks = blocks_of(DOCS / "architecture.md")
    tree = next(block.body for block in blocks if block.body.startswith("src/conekg/"))
    root = folder = inner = ROOT
    for line in tree.splitlines():
        depth = len(line) - len(line.lstrip())
        first = line.split()[0]
        if depth == 0:
            root = folder = inner = ROOT / first
        elif depth == 2:
            folder = inner = root / first if first.endswith("/") else root
        elif depth == 4:
            inner = folder / first if first.endswith("/") else folder
        named = PATH.findall(line)
        if depth <= 4 and first.endswith("/"):
            yield inner
            named = named[1:]
        yield from (inner / name for name in named)


def test_the_tree_names_only_existing_paths() -> None:
    named = set(paths_of_the_tree())
    assert len(named) > 100
    assert [str(path) for path in named if not path.exists()] == []


def test_the_tree_names_every_module(make_cli: ModuleType) -> None:
    """All but the experiments of the catalog and the commands, which it describes together."""
    package = ROOT / "src" / "conekg"
    catalog = (package / "experiments" / "catalog.py").read_text("utf-8")
    together = set(re.findall(r"from (conekg\.experiments\.\w+) import [A-Z]", catalog))
    for _, command in make_cli.commands(get_command(app), ("conekg",)):
        together |= {command.callback.__module__} if command.callback else set()
    modules = {path for path in package.rglob("*.py") if path.name != "__init__.py"}
    missing = {path.relative_to(ROOT / "src") for path in modules - set(paths_of_the_tree())}
    assert {".".join(path.with_suffix("").parts) for path in missing} - together == set()


def test_paths_in_the_text_below_the_tree_exist() -> None:
    text = re.sub(
        r"^```.*?^```$", "", (DOCS / "architecture.md").read_text("utf-8"), flags=re.M | re.S
    )
    named = re.findall(r"`([\w/-]+\.py|[\w-]+/[\w/-]*)`", text)
    assert named
    for path in named:
        assert (ROOT / path).exists() or (ROOT / "src" / "conekg" / path).exists(), path


def test_the_pipeline_shows_the_folders_in_their_order() -> None:
    from test_layers import LAYERS

    text = (DOCS / "architecture.md").read_text("utf-8")
    pipeline = next(line for line in text.splitlines() if line.startswith("files ─▶"))
    assert tuple(pipeline.split(" ─▶ ")[1:]) == LAYERS


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
def test_blocks_in_other_forms_are_refused(text: str, tmp_path: Path) -> None:
    """The tests would not find a block in such a form and never run it."""
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError, match=r"page\.md"):
        blocks_of(page)


def test_nested_lists_are_not_taken_for_indented_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("- one\n  - two\n    - three\n\n```sh\nmake\n```\n")
    assert [block.language for block in blocks_of(page)] == ["sh"]


def test_sessions_are_split_into_commands_and_their_output() -> None:
    steps = steps_of("$ conekg a \\\n    --b\nprinted\n$ conekg c\n")
    assert [step.command for step in steps] == ["conekg a --b", "conekg c"]
    assert steps[0].printed == "printed\n"
    assert words_of("KEY=1 conekg serve 'a & b' --port 1 & curl x") == [
        ["conekg", "serve", "a & b", "--port", "1"],
        ["curl", "x"],
    ]


def test_bash_is_installed() -> None:
    assert shutil.which("bash"), "the sessions of the book need bash"

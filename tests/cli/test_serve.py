"""`conekg serve`: refusals before anything is loaded, and a real process that answers."""

from __future__ import annotations

import builtins
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Event

from extras import need

need("fastapi", "uvicorn", "httpx")

import httpx
import pytest
import torch
from typer.testing import CliRunner

import conekg
from conekg.answering.fit import fit
from conekg.cli.main import app
from conekg.errors import ConfigError
from restless_client import ask_until_refused
from tiny import FEW, SETTINGS, tiny_graph

runner = CliRunner()


def test_a_missing_run_is_one_message_and_exit_code_2(tmp_path: Path):
    result = runner.invoke(app, ["serve", str(tmp_path / "nothing"), "--port", "0"])
    assert result.exit_code == 2
    assert "nothing" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--limit", "timeout=3"], "unknown limit 'timeout'"),
        (["--limit", "top_k=-1"], "limit top_k is -1"),
        (["--limit", "query_depth=200"], "limit query_depth is 200"),
        (["--api-key", " "], "the API key is empty"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
        (["--allow-host", "kg.example:80"], "'kg.example:80' is not a host name"),
    ],
)
def test_bad_options_are_refused_before_the_run_is_read(tmp_path: Path, options, message):
    result = runner.invoke(app, ["serve", str(tmp_path), "--port", "0", *options])
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("key", ["", " \n"])
def test_an_empty_key_variable_is_refused(tmp_path: Path, monkeypatch, key: str):
    """If a secret was not filled in, the server must not run without protection."""
    monkeypatch.setenv("CONEKG_API_KEY", key)
    result = runner.invoke(app, ["serve", str(tmp_path), "--port", "0"])
    assert result.exit_code == 2
    assert "the API key is empty" in result.stderr
    assert "unset CONEKG_API_KEY" in result.stderr.replace("\n", " ")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real_import = builtins.__import__

    def without_fastapi(name, *arguments, **options):
        if name.split(".")[0] == "fastapi":
            raise ModuleNotFoundError(f"No module named {name!r}", name="fastapi")
        return real_import(name, *arguments, **options)

    # Importing again also replaces the package's attribute `serving`, which later tests need.
    monkeypatch.setattr(conekg, "serving", None, raising=False)
    for module in [name for name in sys.modules if name.startswith("conekg.serving")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without_fastapi)
    result = runner.invoke(app, ["serve", str(tmp_path)])
    assert result.exit_code == 2
    assert "pip install 'conekg[serve]'" in result.stderr


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run trained for three steps, calibrated."""
    folder = tmp_path_factory.mktemp("serve") / "run"
    fit(tiny_graph(), folder, settings=SETTINGS, protocol=FEW, device=torch.device("cpu"))
    return folder


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `serve` stop once it has said that it is ready."""

    def stop(*_: object, on_ready: Callable[[], None], **__: object) -> None:
        on_ready()
        raise ConfigError("stopped before it listened")

    monkeypatch.setattr(import_module("conekg.serving.server"), "make_server", stop)


@pytest.mark.parametrize(
    ("options", "is_open"),
    [
        (["--host", "0.0.0.0"], True),
        (["--host", "0.0.0.0", "--api-key", "open sesame"], False),
        ([], False),
    ],
    ids=["anybody", "with a key", "this machine"],
)
def test_a_server_that_anybody_may_ask_is_pointed_out(
    run_folder: Path, stopped: None, options: list[str], is_open: bool
):
    result = runner.invoke(app, ["serve", str(run_folder), "--port", "0", *options])
    told = " ".join(result.stderr.split())
    assert "stopped before it listened" in told
    warning = "every client that can reach 0.0.0.0 may ask questions; --api-key requires a key"
    assert (warning in told) == is_open
    assert "sesame" not in told


def test_a_checkpoint_without_probabilities_is_pointed_out(
    run_folder: Path, tmp_path: Path, stopped: None
):
    calibrated = runner.invoke(app, ["serve", str(run_folder), "--port", "0"])
    assert "stopped before it listened" in calibrated.stderr
    assert "no probabilities" not in calibrated.stderr
    bare = shutil.copytree(run_folder, tmp_path / "bare")
    (bare / "calibration.json").unlink()
    told = runner.invoke(app, ["serve", str(bare), "--port", "0"]).stderr.replace("\n", "")
    assert f"no probabilities: `conekg calibrate {bare}` fits them" in told


@contextmanager
def started(run_folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A real server of a run that has just been started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "conekg", "serve", str(run_folder), "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CONEKG_API_KEY": "k3y"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def served(run_folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real server of a run, and its address."""
    with started(run_folder, *options) as process:
        assert process.stderr is not None
        url = None
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                url = found[0]
                break
        assert url is not None, "the server did not say where it listens"
        yield process, url


def client_of(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, verify=False, timeout=30, headers={"X-API-Key": "k3y"})


def test_a_run_is_served_until_it_is_told_to_stop(run_folder: Path):
    with served(run_folder) as (process, url):
        with client_of(url) as client:
            about = client.get("/api/about").json()
            assert about["examples"]
            query = about["examples"][0]["query"]
            assert client.post("/api/ask", json={"query": query}).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def status_for(url: str, host: str) -> int:
    with client_of(url) as client:
        return client.get("/health", headers={"host": host}).status_code


def test_a_loopback_server_answers_only_to_loopback_names(run_folder: Path):
    with served(run_folder) as (_, url):
        assert status_for(url, "localhost:8000") == 200
        assert status_for(url, "evil.example") == 421
        assert status_for(url, "kg.example") == 421


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The process ids of the server's worker processes; Linux only."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    is_worker = [b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    return [int(child) for child, found in zip(children, is_worker, strict=True) if found]


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def hears_interrupts(process_id: int) -> bool:
    """Whether a process handles SIGINT, as Python does before it imports anything."""
    status = Path(f"/proc/{process_id}/status").read_text()
    found = re.search(r"SigCgt:\t([0-9a-f]+)", status)
    assert found is not None
    return bool(int(found[1], 16) >> (signal.SIGINT - 1) & 1)


def knows_its_work(process_id: int) -> bool:
    """Whether a worker has received its arguments: unpickling them imports our code."""
    return "numpy" in Path(f"/proc/{process_id}/maps").read_text()


def is_gone(process_id: int) -> bool:
    status = Path(f"/proc/{process_id}/status")
    return not status.exists() or "State:\tZ" in status.read_text()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads processes from /proc")
class TestSeveralProcesses:
    def test_they_answer_and_report_metrics_as_one_server(self, run_folder: Path):
        asked = 24
        names = ("--allow-host", "kg.example", "--allow-host", "kg.test")
        with served(run_folder, "--processes", "2", *names) as (process, url):
            workers = workers_of(process)
            assert len(workers) == 2
            hosts = ("kg.example:8000", "kg.test", "evil.example")
            assert [status_for(url, host) for host in hosts] == [200, 200, 421]
            for _ in range(asked):  # each on a connection of its own: by either process
                with client_of(url) as client:
                    answer = client.post("/api/ask", json={"query": "job0.^works_as"})
                assert answer.status_code == 200
            counted = (
                f'conekg_requests_total{{method="POST",route="/api/ask",status="200"}} {asked}\n'
            )

            def all_count_alike() -> bool:
                texts = []
                for _ in range(8):
                    with client_of(url) as client:
                        texts.append(client.get("/metrics").text)
                return all(counted in text for text in texts)

            wait_until(all_count_alike)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert all(is_gone(worker) for worker in workers)

    def test_they_answer_what_they_have_accepted_before_they_stop(self, run_folder: Path):
        def ask(url: str, answered: Event) -> int:
            with client_of(url) as client:
                return ask_until_refused(client, answered)

        answered = [Event() for _ in range(8)]
        options = ("--processes", "2", "--limit", "farewell_s=60")  # machines may be slow
        with served(run_folder, *options) as (process, url):
            with ThreadPoolExecutor(8) as pool:
                clients = [pool.submit(ask, url, each) for each in answered]
                are_busy = [each.wait(60) for each in answered]
                process.send_signal(signal.SIGTERM)
                answers = [client.result() for client in clients]
            assert all(are_busy)
            assert all(answers)
            assert process.wait(60) == 0

    def test_a_process_that_dies_ends_the_server_with_a_message(self, run_folder: Path):
        with served(run_folder, "--processes", "2") as (process, _):
            first, second = workers_of(process)
            os.kill(first, signal.SIGKILL)
            assert process.wait(60) == 2
            assert process.stderr is not None
            told = process.stderr.read()
            assert "a process of the server ended by itself" in told
            assert "Traceback" not in told
            assert is_gone(second)

    def test_no_process_outlives_its_parent(
        self, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        with served(run_folder, "--processes", "2") as (process, _):
            workers = workers_of(process)
            assert list(tmp_path.glob("conekg-*"))
            process.kill()
            wait_until(lambda: all(is_gone(worker) for worker in workers))
        assert not list(tmp_path.glob("conekg-*")), "nobody tidied up"

    def test_no_traceback_if_the_parent_dies_before_the_processes_listen(
        self, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        with started(run_folder, "--processes", "2") as process:
            wait_until(lambda: len(workers_of(process)) == 2)
            workers = workers_of(process)
            wait_until(lambda: all(map(knows_its_work, workers)))
            process.kill()
            assert process.stderr is not None
            told = process.stderr.read()  # to the end: until the workers have closed theirs
        assert "Traceback" not in told
        assert not list(tmp_path.glob("conekg-*")), "nobody tidied up"

    def test_an_interrupt_while_they_start_ends_them_without_a_traceback(self, run_folder: Path):
        with started(run_folder, "--processes", "2") as process:
            wait_until(lambda: len(workers_of(process)) == 2)
            workers = workers_of(process)
            wait_until(lambda: all(map(hears_interrupts, workers)))
            for worker in workers:  # as a terminal interrupts all, but no parent to end them first
                os.kill(worker, signal.SIGINT)
            assert process.wait(60) == 2
            assert process.stderr is not None
            told = process.stderr.read()
        assert "a process of the server ended by itself" in told
        assert "Traceback" not in told

    @pytest.mark.skipif(
        signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="nohup runs these tests"
    )
    def test_they_end_with_their_terminal(self, run_folder: Path):
        with served(run_folder, "--processes", "2") as (process, _):
            workers = workers_of(process)
            process.send_signal(signal.SIGHUP)
            assert process.wait(60) == 0
            assert all(is_gone(worker) for worker in workers)

    def test_a_load_error_is_one_message(self, run_folder: Path, tmp_path: Path):
        damaged = shutil.copytree(run_folder, tmp_path / "damaged")
        shutil.rmtree(damaged / "checkpoints")
        command = ["serve", str(damaged), "--port", "0", "--processes", "2"]
        result = subprocess.run(
            [sys.executable, "-m", "conekg", *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert result.returncode == 2
        assert "checkpoint" in result.stderr
        assert "Traceback" not in result.stderr

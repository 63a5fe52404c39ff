"""Several processes of one server: their share of the limits, and their common metrics."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from conekg.serving.limits import Limits
from conekg.serving.metrics import Metrics
from conekg.serving.share import Share, SharedMetrics

requests = st.tuples(
    st.sampled_from(["GET", "POST"]),
    st.sampled_from(["/api/ask", "/health", "other"]),
    st.sampled_from([200, 404, 503]),
    st.integers(0, 80).map(lambda eighths: eighths / 8),  # sums of these are exact
)


@given(st.lists(st.lists(requests, max_size=6), min_size=1, max_size=4))
def test_added_states_are_as_if_one_process_had_seen_everything(per_process):
    everything, total = Metrics(), Metrics()
    for seen in per_process:
        own = Metrics()
        for metrics in (own, everything):
            metrics.in_flight += 2
            metrics.observe_batch(len(seen), 0.25)
            for request in seen:
                metrics.observe_request(*request)
        total.add(own.state())
    assert total.render() == everything.render()


def test_every_process_reports_the_metrics_of_all(tmp_path: Path):
    processes = [(Metrics(), Share(index, 3, tmp_path)) for index in range(3)]
    shared = [SharedMetrics(metrics, share) for metrics, share in processes]
    for count, (metrics, _) in enumerate(processes, start=1):
        for _ in range(count):
            metrics.observe_request("GET", "/health", 200, 0.1)
    line = 'conekg_requests_total{method="GET",route="/health",status="200"} '
    assert f"{line}2\n" in shared[1].total().render(), "the others have told nothing yet"
    for each in shared:
        each.publish()
    assert all(f"{line}6\n" in each.total().render() for each in shared)
    assert not list(tmp_path.glob("*.draft"))


def test_unchanged_metrics_are_not_written_again(tmp_path: Path):
    metrics = Metrics()
    shared = SharedMetrics(metrics, Share(0, 2, tmp_path))
    shared.publish()
    (tmp_path / "0.json").unlink()
    shared.publish()
    assert not (tmp_path / "0.json").exists()
    metrics.observe_batch(1, 0.1)
    shared.publish()
    assert (tmp_path / "0.json").exists()


def test_publishing_goes_on_until_it_is_cancelled(tmp_path: Path):
    metrics = Metrics()
    shared = SharedMetrics(metrics, Share(1, 2, tmp_path))

    async def run() -> None:
        task = asyncio.create_task(shared.keep_publishing())
        await asyncio.sleep(0.05)
        (tmp_path / "1.json").unlink()
        metrics.observe_batch(1, 0.1)
        while not (tmp_path / "1.json").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_folder_that_was_deleted_is_made_again(tmp_path: Path):
    metrics, folder = Metrics(), tmp_path / "conekg-1"
    shared = SharedMetrics(metrics, Share(0, 2, folder))
    shared.publish()
    assert (folder / "0.json").exists()
    shutil.rmtree(folder)
    metrics.observe_batch(1, 0.1)
    shared.publish()
    assert (folder / "0.json").exists()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_publishing_survives_a_full_disk_and_warns_once(tmp_path: Path, monkeypatch, caplog):
    metrics, tried, is_full = Metrics(), 0, True
    shared = SharedMetrics(metrics, Share(0, 2, tmp_path))
    write_text = Path.write_text

    def write(path: Path, *arguments, **options):
        nonlocal tried
        tried += 1
        if is_full:
            raise OSError(28, "No space left on device")
        return write_text(path, *arguments, **options)

    async def run() -> None:
        nonlocal is_full
        task = asyncio.create_task(shared.keep_publishing())
        while tried < 3:
            await asyncio.sleep(0.001)
        is_full = False
        while not (tmp_path / "0.json").exists():
            await asyncio.sleep(0.001)
        task.cancel()

    monkeypatch.setattr(Path, "write_text", write)
    monkeypatch.setattr("conekg.serving.share.PUBLISH_EVERY_S", 0.001)
    asyncio.run(asyncio.wait_for(run(), 30))
    assert [record.message for record in caplog.records] == [
        "the other processes cannot see this one's metrics: [Errno 28] No space left on device"
    ]


def test_limits_and_cores_are_shared_out(tmp_path: Path):
    share = Share(0, 3, tmp_path)
    own = share.limits(Limits(concurrent_requests=256, explanations=2))
    assert (own.concurrent_requests, own.explanations) == (86, 1)
    assert own.timeout_s == Limits().timeout_s
    assert [share.cores(number) for number in (1, 2, 3, 8)] == [1, 1, 1, 2]

"""The batcher: batches form while the thread works, and nothing accepted is lost."""

from __future__ import annotations

import asyncio
import threading

import pytest

from conekg.serving.batcher import Batcher
from conekg.serving.errors import ServerStoppingError


def run(main):
    return asyncio.run(asyncio.wait_for(main, 20))


class Doubler:
    """Doubles numbers, remembers its batches, and can be held back."""

    def __init__(self):
        self.batches: list[list[int]] = []
        self.threads: set[int] = set()
        self.open = threading.Event()
        self.open.set()

    def __call__(self, jobs):
        self.open.wait(10)
        self.batches.append(list(jobs))
        self.threads.add(threading.get_ident())
        return [ValueError(job) if job < 0 else 2 * job for job in jobs]


def test_results_come_back_to_those_who_asked():
    async def main():
        batcher = Batcher(Doubler(), max_batch=4)
        batcher.start()
        results = await asyncio.gather(*(batcher.submit(n) for n in range(50)))
        await batcher.close()
        return results

    assert run(main()) == [2 * n for n in range(50)]


def test_jobs_that_gather_while_the_thread_works_go_together_up_to_the_cap():
    doubler, heard = Doubler(), []

    async def main():
        batcher = Batcher(doubler, max_batch=8, on_batch=lambda size, _: heard.append(size))
        batcher.start()
        doubler.open.clear()
        first = asyncio.create_task(batcher.submit(0))
        await asyncio.sleep(0.05)
        rest = [asyncio.create_task(batcher.submit(n)) for n in range(1, 13)]
        await asyncio.sleep(0.05)
        doubler.open.set()
        await asyncio.gather(first, *rest)
        await batcher.close()

    run(main())
    assert [len(batch) for batch in doubler.batches] == [1, 8, 4]
    assert heard == [1, 8, 4]
    assert len(doubler.threads) == 1
    assert threading.get_ident() not in doubler.threads


def test_one_failing_job_fails_alone():
    async def main():
        batcher = Batcher(Doubler(), max_batch=8)
        batcher.start()
        results = await asyncio.gather(
            *(batcher.submit(n) for n in (1, -2, 3)), return_exceptions=True
        )
        await batcher.close()
        return results

    first, second, third = run(main())
    assert (first, third) == (2, 6)
    assert isinstance(second, ValueError)


def test_a_batch_that_raises_reaches_every_client():
    def broken(jobs):
        raise OSError("no memory")

    async def main():
        batcher = Batcher(broken, max_batch=8)
        batcher.start()
        results = await asyncio.gather(*(batcher.submit(n) for n in (1, 2)), return_exceptions=True)
        with pytest.raises(OSError, match="no memory"):
            await batcher.submit(3)
        await batcher.close()
        return results

    assert [type(result) for result in run(main())] == [OSError, OSError]


def test_who_gave_up_waiting_is_not_scored():
    doubler = Doubler()

    async def main():
        batcher = Batcher(doubler, max_batch=8)
        batcher.start()
        doubler.open.clear()
        first = asyncio.create_task(batcher.submit(0))
        await asyncio.sleep(0.05)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(batcher.submit(1), 0.05)
        last = asyncio.create_task(batcher.submit(2))
        await asyncio.sleep(0)
        doubler.open.set()
        assert await asyncio.gather(first, last) == [0, 4]
        await batcher.close()

    run(main())
    assert doubler.batches == [[0], [2]]


def test_closing_finishes_what_was_accepted_and_refuses_what_comes_after():
    doubler = Doubler()

    async def main():
        batcher = Batcher(doubler, max_batch=2)
        batcher.start()
        doubler.open.clear()
        accepted = [asyncio.create_task(batcher.submit(n)) for n in range(7)]
        await asyncio.sleep(0.05)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(ServerStoppingError):
            await batcher.submit(99)
        doubler.open.set()
        results = await asyncio.gather(*accepted)
        await closing
        return results

    assert run(main()) == [2 * n for n in range(7)]
    assert 99 not in [job for batch in doubler.batches for job in batch]

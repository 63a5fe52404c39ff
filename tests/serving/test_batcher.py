"""The batcher: batches form while the thread works, and nothing accepted is lost."""

from __future__ import annotations

import asyncio
import threading
import time

from extras import need

need("fastapi")

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
        return [[ValueError(job) if job < 0 else 2 * job for job in jobs]]


def test_each_client_gets_the_result_of_its_own_job():
    async def main():
        batcher = Batcher(Doubler(), max_batch=4)
        batcher.start()
        results = await asyncio.gather(*(batcher.submit(n) for n in range(50)))
        await batcher.close()
        return results

    assert run(main()) == [2 * n for n in range(50)]


def test_jobs_that_arrive_during_a_batch_form_the_next_one_up_to_its_maximum():
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


def come_and_come_again(gather_s, apart_s):
    """The sizes of batches when eight clients ask twice, the second time a little apart."""
    doubler = Doubler()

    async def client(batcher, number):
        await batcher.submit(number)
        await asyncio.sleep(apart_s * number)
        await batcher.submit(number)

    async def main():
        batcher = Batcher(doubler, max_batch=8, gather_s=gather_s)
        batcher.start()
        await asyncio.gather(*(client(batcher, number) for number in range(8)))
        await batcher.close()

    run(main())
    return [len(batch) for batch in doubler.batches]


def test_a_batch_waits_to_become_as_large_as_the_previous_one():
    assert come_and_come_again(gather_s=5.0, apart_s=0.001) == [8, 8]
    scattered = come_and_come_again(gather_s=0.0, apart_s=0.05)  # also where a machine is slow
    assert scattered[0] == 8
    assert len(scattered) > 3


class ScriptedLooks:
    """asyncio, except that sleeping takes no time and scripted events happen at some polls."""

    def __init__(self, happens):
        self.happens = happens
        self.looks = 0

    def __getattr__(self, name):
        return getattr(asyncio, name)

    async def sleep(self, _):
        self.looks += 1
        assert self.looks < 100
        self.happens(self.looks)


@pytest.mark.parametrize(
    ("come_at", "closes_at", "size", "looks"),
    [((), None, 1, 8), ((8, 16), None, 3, 24), ((3, 4), 5, 3, 5), ((1, 2, 3), None, 4, 3)],
)
def test_a_batch_waits_until_no_jobs_come_the_batcher_closes_or_it_is_as_large_as_before(
    monkeypatch, come_at, closes_at, size, looks
):
    async def main():
        batcher = Batcher(Doubler(), max_batch=8, gather_s=600.0)
        batcher._last_size = 4

        def happens(look):
            if look in come_at:
                batcher._queue.put_nowait(look)
            batcher._closing = look == closes_at

        scripted = ScriptedLooks(happens)
        monkeypatch.setattr("conekg.serving.batcher.asyncio", scripted)
        batcher._queue.put_nowait("first")
        taken = await batcher._take()
        return len(taken), scripted.looks

    assert run(main()) == (size, looks)


def test_a_batcher_that_was_not_started_refuses_jobs():
    with pytest.raises(ServerStoppingError):
        run(Batcher(Doubler(), max_batch=1).submit(1))


def test_a_lone_client_never_waits():
    async def main():
        batcher = Batcher(Doubler(), max_batch=8, gather_s=60.0)
        batcher.start()
        results = [await batcher.submit(number) for number in range(5)]
        await batcher.close()
        return results

    started = time.monotonic()
    assert run(main()) == [0, 2, 4, 6, 8]
    assert time.monotonic() - started < 50


def test_closing_does_not_wait_for_more_jobs():
    async def main():
        batcher = Batcher(Doubler(), max_batch=8, gather_s=30.0)
        batcher.start()
        await asyncio.gather(*(batcher.submit(number) for number in range(8)))
        last = asyncio.create_task(batcher.submit(9))
        await asyncio.sleep(0.01)
        await batcher.close()
        return await last

    assert run(main()) == 18


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


def test_an_exception_of_a_whole_batch_reaches_every_client():
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


def test_results_are_delivered_as_they_come():
    answered = threading.Event()

    def in_parts(jobs):
        yield [2 * job for job in jobs[:2]]
        assert answered.wait(10), "the first clients are answered before the batch is done"
        yield [2 * job for job in jobs[2:3]]
        raise OSError("no memory")

    async def main():
        batcher = Batcher(in_parts, max_batch=8)
        waiting = [asyncio.create_task(batcher.submit(n)) for n in range(5)]
        batcher.start()
        await asyncio.sleep(0)
        first = await asyncio.gather(*waiting[:2])
        answered.set()
        rest = await asyncio.gather(*waiting[2:], return_exceptions=True)
        await batcher.close()
        return first, rest

    # Started late, so that all five go together.
    first, (third, *failed) = run(main())
    assert (first, third) == ([0, 2], 4)
    assert [type(result) for result in failed] == [OSError, OSError]


def test_jobs_whose_clients_gave_up_are_not_run():
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


def test_two_threads_work_on_two_batches_at_once():
    meeting = threading.Barrier(2, timeout=10)

    def meet(jobs):
        meeting.wait()  # breaks unless another batch is worked on at the same time
        return [[2 * job for job in jobs]]

    async def main():
        batcher = Batcher(meet, max_batch=2, threads=2)
        batcher.start()
        results = await asyncio.gather(*(batcher.submit(n) for n in range(8)))
        await batcher.close()
        return results

    assert run(main()) == [2 * n for n in range(8)]


def test_a_batch_takes_one_threads_share_of_all_jobs():
    """Eight jobs that arrive together are shared by two idle threads, four each."""
    doubler = Doubler()

    async def main():
        batcher = Batcher(doubler, max_batch=64, threads=2)
        waiting_at_once = [batcher.submit(n) for n in range(8)]
        batcher.start()
        await asyncio.gather(*waiting_at_once)
        await batcher.close()

    run(main())
    assert sorted(len(batch) for batch in doubler.batches) == [4, 4]


def test_running_jobs_count_in_the_share_of_a_thread():
    """With one job running and five waiting, the other thread takes half of the six."""
    doubler = Doubler()

    async def main():
        batcher = Batcher(doubler, max_batch=64, threads=2)
        batcher.start()
        doubler.open.clear()
        first = asyncio.create_task(batcher.submit(0))
        await asyncio.sleep(0.05)
        rest = [asyncio.create_task(batcher.submit(n)) for n in range(1, 6)]
        await asyncio.sleep(0.05)
        doubler.open.set()
        await asyncio.gather(first, *rest)
        await batcher.close()

    run(main())
    assert [0] in doubler.batches
    assert [1, 2, 3] in doubler.batches


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_closing_finishes_accepted_jobs_and_refuses_later_ones(threads):
    doubler = Doubler()

    async def main():
        batcher = Batcher(doubler, max_batch=3, threads=threads)
        batcher.start()
        doubler.open.clear()
        waiting = [asyncio.create_task(batcher.submit(n)) for n in range(20)]
        await asyncio.sleep(0.02)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0.02)
        with pytest.raises(ServerStoppingError):
            await batcher.submit(99)
        doubler.open.set()
        results = await asyncio.gather(*waiting)
        await closing
        return results

    assert run(main()) == [2 * n for n in range(20)]
    assert 99 not in [job for batch in doubler.batches for job in batch]
    assert len(doubler.threads) <= threads

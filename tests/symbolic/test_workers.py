from __future__ import annotations

import threading
import time
from itertools import count, islice

import pytest

from conekg.symbolic.workers import PerThread, available_cores, map_in_order


@pytest.mark.parametrize("workers", [1, 2, 5, None])
def test_results_come_in_order_whichever_finishes_first(workers: int | None) -> None:
    def slow_at_first(number: int) -> int:
        time.sleep(0.004 if number % 4 == 0 else 0)
        return number * number

    assert list(map_in_order(slow_at_first, range(20), workers)) == [n * n for n in range(20)]


@pytest.mark.parametrize("workers", [1, 3])
def test_endless_items_are_taken_only_a_little_ahead(workers: int) -> None:
    taken: list[int] = []

    def numbers():
        for number in count():
            taken.append(number)
            yield number

    results = map_in_order(lambda number: number, numbers(), workers)
    assert list(islice(results, 10)) == list(range(10))
    results.close()
    assert len(taken) <= 10 + 3 * workers


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_reaches_the_consumer(workers: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda number: 1 // (number - 3), range(9), workers))


def test_each_thread_has_a_value_of_its_own() -> None:
    values = PerThread(lambda: [threading.get_ident()])
    seen: list[list[int]] = []
    other = threading.Thread(target=lambda: seen.append(values.value))
    other.start()
    other.join()
    assert seen[0] != values.value
    assert values.value is values.value
    assert values.value == [threading.get_ident()]


def test_at_least_one_core_is_available() -> None:
    assert available_cores() >= 1

import asyncio
import threading

import pytest

from azjax.play.server.workers import Workers

PATIENCE = 60.0  # seconds


def test_those_who_ask_for_the_same_at_a_time_share_the_work():
    async def ask():
        workers, calls, may_end = Workers(), [], threading.Event()

        def work():
            calls.append(None)
            assert may_end.wait(PATIENCE)
            return len(calls)

        asked = [asyncio.create_task(workers.do_once("key", work)) for _ in range(20)]
        await asyncio.sleep(0.05)
        may_end.set()
        together = await asyncio.gather(*asked)
        again = await workers.do_once("key", work)
        workers.close()
        return together, again

    assert asyncio.run(ask()) == ([1] * 20, 2)


def test_who_leaves_takes_nothing_away_from_the_others():
    async def ask():
        workers, may_end = Workers(), threading.Event()
        asked = [
            asyncio.create_task(workers.do_once("key", may_end.wait, PATIENCE))
            for _ in range(2)
        ]
        await asyncio.sleep(0.05)
        asked[0].cancel()
        may_end.set()
        result = await asked[1]
        workers.close()
        return result

    assert asyncio.run(ask()) is True


def test_all_who_ask_are_told_what_went_wrong():
    async def ask():
        workers = Workers()

        def fail():
            raise ValueError("nothing there")

        asked = (workers.do_once("key", fail) for _ in range(3))
        errors = await asyncio.gather(*asked, return_exceptions=True)
        workers.close()
        return [str(error) for error in errors]

    assert asyncio.run(ask()) == ["nothing there"] * 3


def test_slow_work_does_not_keep_quick_work_waiting():
    async def ask():
        workers, may_end = Workers(), threading.Event()
        slow = [
            asyncio.create_task(workers.do_once(key, may_end.wait, PATIENCE))
            for key in range(100)
        ]
        async with asyncio.timeout(PATIENCE):
            assert await workers.do(sum, [1, 2]) == 3
        may_end.set()
        await asyncio.gather(*slow)
        workers.close()

    asyncio.run(ask())


def test_an_error_reaches_whoever_asked():
    async def ask():
        workers = Workers()
        try:
            await workers.do(int, "x")
        finally:
            workers.close()

    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(ask())

"""Thread pools; `test_connection` and `test_notebook` have the clients."""

import asyncio
import threading

from azjax.play.server.client import ThreadPools

PATIENCE = 60.0  # seconds


def test_concurrent_calls_with_one_key_share_one_execution():
    async def ask():
        pools, calls, may_end = ThreadPools(), [], threading.Event()

        def work():
            calls.append(None)
            assert may_end.wait(PATIENCE)
            return len(calls)

        asked = [asyncio.create_task(pools.run_shared("key", work)) for _ in range(20)]
        await asyncio.sleep(0.05)
        may_end.set()
        together = await asyncio.gather(*asked)
        again = await pools.run_shared("key", work)
        pools.close()
        return together, again

    assert asyncio.run(ask()) == ([1] * 20, 2)


def test_a_cancelled_call_does_not_cancel_the_others():
    async def ask():
        pools, may_end = ThreadPools(), threading.Event()
        asked = [
            asyncio.create_task(pools.run_shared("key", may_end.wait, PATIENCE))
            for _ in range(2)
        ]
        await asyncio.sleep(0.05)
        asked[0].cancel()
        may_end.set()
        result = await asked[1]
        pools.close()
        return result

    assert asyncio.run(ask()) is True


def test_an_error_reaches_all_calls_that_share_it():
    async def ask():
        pools = ThreadPools()

        def fail():
            raise ValueError("nothing there")

        asked = (pools.run_shared("key", fail) for _ in range(3))
        errors = await asyncio.gather(*asked, return_exceptions=True)
        pools.close()
        return [str(error) for error in errors]

    assert asyncio.run(ask()) == ["nothing there"] * 3


def test_slow_functions_do_not_delay_quick_ones():
    async def ask():
        pools, may_end = ThreadPools(), threading.Event()
        slow = [
            asyncio.create_task(pools.run_shared(key, may_end.wait, PATIENCE))
            for key in range(100)
        ]
        async with asyncio.timeout(PATIENCE):
            assert await pools.run(sum, [1, 2]) == 3
        may_end.set()
        await asyncio.gather(*slow)
        pools.close()

    asyncio.run(ask())

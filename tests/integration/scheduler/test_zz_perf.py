import asyncio, time, resource
from tests.harness import eventually
from tests.integration.scheduler.world import World
async def test_perf(world: World) -> None:
    async with world.scheduling() as w:
        await w.launcher.offer(slots=16)
        async def task(order):
            await w.launcher.see(order.allocation, "RUNNING")
            await w.launcher.exit(order.allocation)
        w.launcher.on_run = task
        t=time.monotonic()
        e = await w.api.create(searcher={"name":"grid","metric":"loss","max_concurrent_trials":0}, hyperparameters={"x":{"type":"int","minval":1,"maxval":300,"count":300}})
        await w.launcher.running(1)
        print("first", time.monotonic()-t)
        es=[await w.api.create() for _ in range(50)]
        await eventually(lambda: w.api._is(e,"COMPLETED")(), timeout_s=100)
        for x in es: await eventually(lambda: w.api._is(x,"COMPLETED")(), timeout_s=100)
        print("all", time.monotonic()-t)
        await asyncio.sleep(3)
        c=time.process_time(); await asyncio.sleep(20); print("idle cpu/s", (time.process_time()-c)/20)
        print(await w.api.sql("select count(*) from outbox"))

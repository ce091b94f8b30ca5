import asyncio
import sys

import aiodogstatsd

N = 2000


async def main():
    async with aiodogstatsd.Client(
        host="127.0.0.1", port=int(sys.argv[1]), namespace="aio", constant_tags={"env": "test"}
    ) as client:
        for i in range(N):
            client.increment("requests", value=2, tags={"route": "/a/%d" % (i % 2)})
            if i % 20 == 0:
                await asyncio.sleep(0.001)
        client.increment("once")
        client.timing("time", value=3)
    print("aio/requests/env=test/route=%2Fa%2F0", N)
    print("aio/requests/env=test/route=%2Fa%2F1", N)
    print("aio/once/env=test", 1)


asyncio.run(main())

import sys
import time

import statsd

N = 2000
udp = statsd.StatsClient("127.0.0.1", int(sys.argv[1]), prefix="python")
for i in range(N):
    udp.incr("udp.one")
    if i % 20 == 0:
        time.sleep(0.001)
with udp.pipeline() as pipe:
    for i in range(100):
        pipe.incr("udp.piped", 3)
for i in range(10):
    udp.incr("udp.sampled", rate=1)
    udp.gauge("udp.gauge", i)  # rejected, and harms nothing
tcp = statsd.TCPStatsClient("127.0.0.1", int(sys.argv[2]), prefix="python")
for i in range(N):
    tcp.incr("tcp.one", i)
tcp.close()
print("python/udp/one", N)
print("python/udp/piped", 300)
print("python/udp/sampled", 10)
print("python/tcp/one", sum(range(N)))

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Resident memory of a device in the core, beside the same device as a key of Redis that has a time to live."""
import shutil
import tempfile
from pathlib import Path

import measure

ID_BYTES = 14
SPARE_KB = 1 << 20  # that is left to the machine
REDIS_KB_A_KEY = 0.25
# As small as a key with a time to live gets: the id alone, and a value that Redis shares among all keys.
FILL = """
for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    redis.call('SET', string.format('device-%07d', i), 1, 'EX', 86400)
end"""
STEP = 100000


def available_kb():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    return 0


def fill(keys):
    """Bytes a key, as Redis counts them and as the machine does."""
    from hw_servers import Redis
    where = tempfile.mkdtemp(prefix="hw-bench-")
    server = Redis(where).start()
    try:
        client = server.client()
        client.execute_command("CONFIG", "SET", "busy-reply-threshold", 60000)
        used, rss = client.info("memory")["used_memory"], measure.rss_kb(server.pid)
        for first in range(0, keys, STEP):
            client.eval(FILL, 0, first, min(keys, first + STEP) - 1)
        assert client.dbsize() == keys
        return ((client.info("memory")["used_memory"] - used) / keys,
                (measure.rss_kb(server.pid) - rss) * 1024 / keys)
    finally:
        server.stop()
        shutil.rmtree(where)


def main():
    o = measure.options(__doc__)
    for devices, name in ((50000, "50 k"),) if o.smoke else ((1000000, "1 M"), (10000000, "10 M")):
        measure.conditions("%s devices, empty payload" % name)
        more = ("more",) if devices <= 1000000 else ()
        said = measure.relay(o, "growth", devices, 0, *more)
        ours = said["memory"]
        measure.figure("2", "memory, %s devices: a device" % name, ours, "bytes", None, "with its id of 14 bytes")
        measure.figure("2", "memory, %s devices: a device without its id" % name, ours - ID_BYTES, "bytes",
                       None if o.smoke else ("<=", 96))
        if more:
            measure.figure("2", "memory, %s devices: a device that reports five fields" % name, said["reported"], "bytes",
                           None, "battery, rssi, ip, version, uptime; with its id")
            measure.figure("2", "memory, %s devices: five reported fields" % name, said["reported"] - ours, "bytes",
                           None if o.smoke else ("<=", 96), "of a device that reports them, more than of one that does not")
            measure.figure("2", "memory, %s devices: a device known by a key as well" % name, said["keyed"], "bytes", None,
                           "with its id")
        keys, note = devices, None
        if available_kb() < devices * REDIS_KB_A_KEY + SPARE_KB:
            keys = min(devices, 1000000)
            note = "with %d keys: there is no memory for more" % keys
        used, rss = fill(keys)
        measure.figure("2", "memory, %s devices: a Redis key with a time to live, used_memory" % name, used, "bytes",
                       None, note)
        measure.figure("2", "memory, %s devices: a Redis key with a time to live, RSS" % name, rss, "bytes", None, note)
        measure.figure("2", "memory, %s devices: Redis key / heartwheel, RSS" % name, rss / ours, "x", None, note)


main()

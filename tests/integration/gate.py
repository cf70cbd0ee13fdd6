"""A proxy between a client and a server on this machine that simulates network faults, which a test
switches while connections are open.

    with Gate(redis.port) as gate:      # connect to gate.port
        gate.delay = 0.005              # each way; gate.jitter on top, never out of order
        gate.slice_bytes = 3            # data is forwarded in pieces of this size
        gate.hold("to_client")          # stalls one direction, or "both"; data is kept, as TCP does
        gate.corrupt(1)                 # changes the first byte of the next chunk to the client
        gate.half_close()               # the client reads the end of the stream, and can still write
        gate.reset(after_bytes=7)       # resets connections, now or in the middle of the next answers
        gate.cut()                      # closes connections, and refuses new ones
        gate.heal()                     # ends all faults; held data arrives late
"""

import asyncio
import random
import socket
import struct
import threading

CHUNK_BYTES = 65536
TO_CLIENT, TO_SERVER = "to_client", "to_server"


class Gate:
    def __init__(self, server_port, seed=1):
        self.server_port = server_port
        self.seed = seed
        self._random = random.Random(seed)
        self._links = set()
        self._loop = asyncio.new_event_loop()
        self._listener = None
        self.accepted = 0
        self._calm()
        self.port = 0
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._do(self._listen())

    def _calm(self):
        self.delay = self.jitter = 0.0
        self.slice_bytes = None
        self._held = set()
        self._corrupt_chunks = 0
        self._corrupt_anywhere = False
        self._reset_after = None

    # ---- Called by the test

    def hold(self, direction):
        self._held |= {TO_CLIENT, TO_SERVER} if direction == "both" else {direction}

    def corrupt(self, chunks, anywhere=False):
        """Changes a byte in each of the next chunks to the client: the first byte, or any."""
        self._corrupt_anywhere = anywhere
        self._corrupt_chunks = chunks

    def half_close(self):
        self._do(self._half_close())

    def reset(self, after_bytes=0):
        if after_bytes:
            self._reset_after = after_bytes
        else:
            self._do(self._reset())

    def cut(self):
        self._do(self._cut())

    def heal(self):
        self._do(self._heal())

    @property
    def open_links(self):
        return len(self._links)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # ---- On the loop's thread

    def _do(self, coroutine):
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=20)

    async def _listen(self):
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _accept(self, client_reader, client):
        try:
            server_reader, server = await asyncio.open_connection("127.0.0.1", self.server_port)
        except OSError:
            return client.transport.abort()
        self.accepted += 1
        for end in (client, server):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = (client, server)
        self._links.add(link)
        try:
            # The first of the four tasks that fails ends the others; data of a dead connection is
            # dropped.
            async with asyncio.TaskGroup() as pumps:
                for reader, writer, direction in ((client_reader, server, TO_SERVER), (server_reader, client, TO_CLIENT)):
                    line = asyncio.Queue(maxsize=1024)
                    pumps.create_task(self._fill(line, reader))
                    pumps.create_task(self._empty(line, writer, direction))
        except* OSError:
            pass
        finally:
            self._links.discard(link)
            client.transport.abort()
            server.transport.abort()

    # A delay line for each direction: data read at time t is written at t + delay, in order.

    async def _fill(self, line, reader):
        at_end = False
        while not at_end:
            chunk = await reader.read(CHUNK_BYTES)
            due = self._loop.time() + self.delay + self._random.random() * self.jitter
            await line.put((due, chunk))
            at_end = not chunk

    async def _empty(self, line, writer, direction):
        while True:
            due, chunk = await line.get()
            await asyncio.sleep(max(0, due - self._loop.time()))
            while direction in self._held:
                await asyncio.sleep(0.01)
            if not chunk:
                return writer.write_eof()
            await self._write(writer, chunk, direction)

    async def _write(self, writer, chunk, direction):
        # Reads the setting again each time: the test may change it meanwhile.
        reset_after, slice_bytes = self._reset_after, self.slice_bytes or len(chunk)
        if direction == TO_CLIENT and self._corrupt_chunks > 0:
            self._corrupt_chunks -= 1
            at = self._random.randrange(len(chunk)) if self._corrupt_anywhere else 0
            chunk = chunk[:at] + bytes([chunk[at] ^ 0x15]) + chunk[at + 1 :]
        if direction == TO_CLIENT and reset_after is not None:
            writer.write(chunk[:reset_after])
            await writer.drain()
            hang_up(writer)
            raise ConnectionResetError
        for at in range(0, len(chunk), slice_bytes):
            writer.write(chunk[at : at + slice_bytes])
            await writer.drain()
            await asyncio.sleep(0)

    async def _half_close(self):
        for client, _ in self._links:
            if client.can_write_eof():
                client.write_eof()

    async def _reset(self):
        for client, server in list(self._links):
            hang_up(client)
            hang_up(server)

    async def _cut(self):
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        await self._reset()

    async def _end(self):
        await self._cut()
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _heal(self):
        self._calm()
        if self._listener is None:
            await self._listen()


def hang_up(writer):
    """Closes with a reset instead of an end of stream, unless the other side has reset already."""
    if writer.transport.is_closing():
        return
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()

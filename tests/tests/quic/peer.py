"""A QUIC server and a QUIC client with aioquic.

server PORT CERTIFICATE KEY         echoes the data of each stream
client PORT SEED                    sends random bytes on a stream for some seconds, changes its port twice in that time, as a new
                                    NAT mapping would, and checks each echoed byte
"""

import asyncio
import random
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, StreamDataReceived

HOST = "127.0.0.1"
PROTOCOLS = ["echo"]
PART_BYTES = 20_000
PARTS = 60
MOVES = {20, 40}
PAUSE_S = 0.04
TIMEOUT_S = 20


class Echo(QuicConnectionProtocol):
    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            self._quic.send_stream_data(event.stream_id, event.data, event.end_stream)


class Client(QuicConnectionProtocol):
    def __init__(self, quic):
        super().__init__(quic)
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self.received = bytearray()
        self.why = None

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            self.ready.set()
        elif isinstance(event, StreamDataReceived):
            self.received += event.data
            if event.end_stream:
                self.ended.set()
        elif isinstance(event, ConnectionTerminated):
            self.why = event
            self.ready.set()
            self.ended.set()


async def server(port, certificate, key):
    settings = QuicConfiguration(is_client=False, alpn_protocols=PROTOCOLS)
    settings.load_cert_chain(certificate, key)
    await serve(HOST, port, configuration=settings, create_protocol=Echo)
    print("serves", flush=True)
    await asyncio.Event().wait()


async def new_port(protocol):
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: protocol, local_addr=(HOST, 0))
    return transport


async def client(port, seed):
    settings = QuicConfiguration(
        is_client=True, alpn_protocols=PROTOCOLS, verify_mode=ssl.CERT_NONE, server_name="test"
    )
    protocol = Client(QuicConnection(configuration=settings))
    transport = await new_port(protocol)
    protocol.connect((HOST, port))
    await protocol.ready.wait()
    stream = protocol._quic.get_next_available_stream_id()
    source = random.Random(seed)
    sent = bytearray()
    for part in range(PARTS):
        if part in MOVES:
            old, transport = transport, await new_port(protocol)
            old.close()
            print("moved", flush=True)
        data = source.randbytes(PART_BYTES)
        sent += data
        protocol._quic.send_stream_data(stream, data, part == PARTS - 1)
        protocol.transmit()
        await asyncio.sleep(PAUSE_S)
    await protocol.ended.wait()
    if protocol.why is not None:
        sys.exit(f"the connection ended: {protocol.why}")
    if protocol.received != sent:
        sys.exit(f"sent {len(sent)} bytes, and others came back: {len(protocol.received)}")
    print(f"{len(sent)} bytes", flush=True)


def main():
    role, port, *rest = sys.argv[1:]
    if role == "server":
        asyncio.run(server(int(port), *rest))
    else:
        asyncio.run(asyncio.wait_for(client(int(port), *rest), TIMEOUT_S))


main()

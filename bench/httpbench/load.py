"""Loads: open rate and fixed count (h2load), saturation (wrk), and our own client with a fixed sequence.

Every load returns how many good responses it saw and fails when there was any other.
"""

import re
import socket
import subprocess

from . import machine

LOAD_TIMEOUT_S = 600
# An offered rate counts as kept when the run took as long as it should, give or take this.
DURATION_TOLERANCE = 0.03
DURATION_SLACK_S = 0.05
UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

# What a browser's request to a site looks like, about 200 bytes.
FIXED_REQUEST = ("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: weir-bench/1.0\r\n"
                 "Accept: text/html,application/json;q=0.9,*/*;q=0.8\r\n"
                 "Accept-Language: en-GB,en;q=0.8\r\nCookie: session=0123456789abcdef\r\n\r\n")


class RateMissed(machine.BenchError):
    """The offered rate was not kept: the machine was busy with something else, or cannot."""


def run_tool(command, core):
    command = ["taskset", "-c", str(core), *map(str, command)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LOAD_TIMEOUT_S)
    if done.returncode != 0:
        raise machine.BenchError(f"{' '.join(command)} failed:\n{done.stdout}")
    return done.stdout


def h2load(url, core, requests, connections=64, rate=None, rate_counts=True):
    """`requests` GETs in all; at `rate` per second over all connections, or as fast as answered."""
    command = ["h2load", "--h1", "-t", 1, "-c", connections, "-n", requests]
    if rate:
        command.append(f"--rps={rate / connections:g}")
    text = run_tool([*command, url], core)
    totals = re.search(r"requests: (\d+) total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed,"
                       r" (\d+) errored, (\d+) timeout", text)
    codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", text)
    finished = re.search(r"finished in ([\d.]+)(us|ms|s), ([\d.]+) req/s", text)
    if not (totals and codes and finished):
        raise machine.BenchError(f"h2load says something new:\n{text}")
    if int(codes[1]) != requests or int(totals[2]) != requests:
        raise machine.BenchError(f"not every response was good at {url}:\n{text}")
    if rate and rate_counts:
        check_offered_rate(float(finished[1]) * UNITS_S[finished[2]], requests, connections, rate, url)
    return {"requests": requests, "rate": float(finished[3]), "raw": text}


def check_offered_rate(elapsed_s, requests, connections, rate, url):
    """Fails when the generator or the product did not keep the rate; all connections start at once."""
    expected_s = (requests - connections) / rate
    if abs(elapsed_s - expected_s) > DURATION_TOLERANCE * expected_s + DURATION_SLACK_S:
        raise RateMissed(f"{requests} requests at {rate}/s took {elapsed_s:.2f} s instead of"
                         f" {expected_s:.2f} s at {url}")


def wrk(url, core, seconds, connections=64):
    """As fast as answered for `seconds`."""
    text = run_tool(["wrk", "-t", 1, "-c", connections, "-d", f"{seconds}s", "--latency", url], core)
    requests = re.search(r"(\d+) requests in ([\d.]+)(m?s)", text)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    if not (requests and rate):
        raise machine.BenchError(f"wrk says something new:\n{text}")
    if "Non-2xx" in text or "Socket errors" in text:
        raise machine.BenchError(f"not every response was good at {url}:\n{text}")
    return {"requests": int(requests[1]), "rate": float(rate[1]), "raw": text}


class Client:
    """A keep-alive connection that sends one request at a time and checks what comes back."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=LOAD_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = address

    def get(self, path, body_size):
        host = f"{self.address[0]}:{self.address[1]}"
        self.socket.sendall(FIXED_REQUEST.format(path=path, host=host).encode())
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0 or len(received) < end + 4 + body_size:
            some = self.socket.recv(65536)
            if not some:
                raise machine.BenchError(f"{host} closed a connection in a response")
            received += some
        if not received.startswith(b"HTTP/1.1 200 ") or len(received) != end + 4 + body_size:
            raise machine.BenchError(f"{host} answered {received[:200]!r}")

    def close(self):
        self.socket.close()


def fixed_sequence(addresses, requests, path="/128", body_size=128):
    """`requests` GETs one after the other, over one connection per address in turn."""
    clients = [Client(address) for address in addresses]
    for index in range(requests):
        clients[index % len(clients)].get(path, body_size)
    for client in clients:
        client.close()

"""The machine: processes that are always ended, ports, cores, counters of /proc."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time

CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
READY_TIMEOUT_S = 60
QUIET_TIMEOUT_S = 120
QUIET_BUSY_SHARE_MAX = 0.05
STOP_ATTEMPTS_MAX = 6
STOP_ATTEMPT_S = 10

# Debian's package of each tool that the benchmark calls.
PACKAGES = {
    "nginx": "nginx",
    "haproxy": "haproxy",
    "wrk": "wrk",
    "h2load": "nghttp2-client",
    "valgrind": "valgrind",
    "perf": "linux-perf",
    "taskset": "util-linux",
}


class BenchError(Exception):
    """A measurement that cannot be trusted or not be made; the message says why."""


def install_missing_tools(tools):
    """Installs what is absent with apt-get when that is possible, else says what to install."""
    missing = sorted({PACKAGES[tool] for tool in tools if not shutil.which(tool)})
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise BenchError(f"please install: {' '.join(missing)}")
    print(f"installing {' '.join(missing)}", flush=True)
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (["apt-get", "-qq", "update"],
                    ["apt-get", "-qq", "install", "-y", "--no-install-recommends", *missing]):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise BenchError(f"{' '.join(command)} failed:\n{done.stdout}")


def free_port():
    """A port outside the range of outgoing connections that nothing listens on."""
    while True:
        port = random.randint(10_000, 30_000)
        with contextlib.closing(socket.socket()) as probe:
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
            return port


def wait_until_listening(address, process):
    """Returns once a connection is accepted; fails when the process ends first."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        if process.poll() is not None:
            raise BenchError(f"{process.args[0]} ended with {process.returncode} before it served;"
                             f" see {process.log_path}:\n{tail(process.log_path)}")
        try:
            socket.create_connection(address, timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise BenchError(f"{process.args[0]} does not accept on {address}")
            time.sleep(0.02)


def tail(path, lines=15):
    return "\n".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])


@contextlib.contextmanager
def running(command, log_path, core=None, cwd=None, stop_signal=signal.SIGTERM):
    """Runs a server in its own session for the length of a `with` block."""
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    with open(log_path, "ab") as log:
        process = subprocess.Popen([str(part) for part in command], cwd=cwd, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL)
    process.log_path = log_path
    try:
        yield process
    finally:
        stop(process, stop_signal)


def stop(process, stop_signal):
    """Ends a process that this script started: politely, again (valgrind may lose a signal), then not."""
    for _ in range(STOP_ATTEMPTS_MAX):
        if process.poll() is not None:
            return
        process.send_signal(stop_signal)
        try:
            process.wait(STOP_ATTEMPT_S)
            return
        except subprocess.TimeoutExpired:
            pass
    process.kill()
    process.wait()


def worker_of(pid):
    """The only child of a master process, or the process itself when it has none."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    if len(children) > 1:
        raise BenchError(f"process {pid} has {len(children)} children, expected one worker")
    return int(children[0]) if children else pid


class CoreTimes:
    """Seconds of one core since boot, by kind.

    Linux counts the idle time of a core exactly (it stops the tick there), and every other kind by
    sampling at ticks, which misses work that begins and ends between two of them. So the busy time is
    what idleness and the hypervisor left over, not a sum of samples.
    """

    KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    NOT_BUSY = ("idle", "iowait", "steal")

    def __init__(self, core):
        for line in pathlib.Path("/proc/stat").read_text().splitlines():
            fields = line.split()
            if fields[0] == f"cpu{core}":
                self.ticks = dict(zip(self.KINDS, map(int, fields[1:9])))
                break
        else:
            raise BenchError(f"/proc/stat has no core {core}")
        self.at = time.monotonic()

    def since(self, earlier):
        """Seconds per kind, with `elapsed` and `busy`."""
        spent = {kind: (self.ticks[kind] - earlier.ticks[kind]) / CLOCK_TICKS_PER_SECOND
                 for kind in self.KINDS}
        spent["elapsed"] = self.at - earlier.at
        spent["busy"] = max(spent["elapsed"] - sum(spent[kind] for kind in self.NOT_BUSY), 0.0)
        return spent


def process_times(pid):
    """Seconds of a process over all its threads: user, system (ticks) and on-core (nanoseconds)."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    on_core_ns = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        on_core_ns += int((thread / "schedstat").read_text().split()[0])
    return {
        "user": int(fields[11]) / CLOCK_TICKS_PER_SECOND,
        "system": int(fields[12]) / CLOCK_TICKS_PER_SECOND,
        "on_core": on_core_ns / 1e9,
    }


def memory_bytes(pid):
    """Resident user-space memory of a process: all of it, and the anonymous part."""
    kib = {}
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            kib[name] = int(rest.split()[0])
    return {"resident": kib["VmRSS"] * 1024, "anonymous": kib["RssAnon"] * 1024}


def idle_busy_share(core, seconds):
    """Share of a core that is busy while the benchmark does nothing."""
    before = CoreTimes(core)
    time.sleep(seconds)
    spent = CoreTimes(core).since(before)
    return spent["busy"] / spent["elapsed"]


def wait_until_quiet(cores):
    """Waits until nothing else uses the cores; goes on after a while, for the rounds' check to judge."""
    deadline = time.monotonic() + QUIET_TIMEOUT_S
    while max(idle_busy_share(core, 0.5) for core in cores) > QUIET_BUSY_SHARE_MAX:
        if time.monotonic() > deadline:
            return


def describe():
    """What a reader needs to know of the machine."""
    def output(*command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout.strip().splitlines()[0] if done.stdout.strip() else "?"

    def first(path, prefix):
        for line in pathlib.Path(path).read_text().splitlines():
            if line.startswith(prefix):
                return line.split(":" if ":" in line else "=", 1)[1].strip().strip('"')
        return "?"

    return {
        "host": os.uname().nodename,
        "kernel": f"{os.uname().sysname} {os.uname().release} {os.uname().machine}",
        "system": first("/etc/os-release", "PRETTY_NAME"),
        "cpu": first("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory": first("/proc/meminfo", "MemTotal"),
        "nginx": output("nginx", "-v"),
        "haproxy": output("haproxy", "-v"),
        "wrk": output("wrk", "-v"),
        "h2load": output("h2load", "--version"),
        "valgrind": output("valgrind", "--version") if shutil.which("valgrind") else "absent",
        "rustc": output("rustc", "--version") if shutil.which("rustc") else "absent",
    }

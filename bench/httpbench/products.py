"""The origin, the products under test, and how each is started from its configuration in bench/peers."""

import contextlib
import json
import pathlib
import shutil
import signal
import subprocess

from . import machine

BENCH = pathlib.Path(__file__).resolve().parent.parent
PEERS = BENCH / "httpbench" / "peers"
ROOT = BENCH.parent
LISTEN_ADDRESS = "127.0.0.1"
OBJECT_128 = "weirgate " * 14 + "ok"


class Running:
    """A product that serves: its process, the process that does the work, its address."""

    def __init__(self, name, process, worker_pid, address):
        self.name = name
        self.process = process
        self.worker_pid = worker_pid
        self.address = address

    def url(self, path):
        return f"http://{self.address[0]}:{self.address[1]}{path}"


def fill(template, values, target):
    """Writes a configuration from its template; an unfilled @NAME@ is a mistake of ours."""
    text = (PEERS / template).read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    target.write_text(text)
    return target


@contextlib.contextmanager
def origin(directory, core):
    """The nginx origin; yields its port."""
    directory.mkdir(parents=True, exist_ok=True)
    objects = directory / "objects"
    objects.mkdir(exist_ok=True)
    (objects / "128k").write_bytes((b"weirgate" * 16 * 1024))
    for path in (directory, objects):
        path.chmod(0o755)
    port = machine.free_port()
    config = fill("origin.conf", {"PORT": port, "OBJECT_128": OBJECT_128}, directory / "origin.conf")
    command = ["nginx", "-p", f"{directory}/", "-e", "error.log", "-c", config]
    with machine.running(command, directory / "output.log", core) as process:
        machine.wait_until_listening((LISTEN_ADDRESS, port), process)
        yield port


class Setting:
    """Where and under what a product runs."""

    def __init__(self, directory, members, core=None, under=(), stop_signal=signal.SIGTERM):
        self.directory = directory
        self.members = members
        self.core = core
        self.under = list(under)
        self.stop_signal = stop_signal


@contextlib.contextmanager
def start(name, setting, build, virtual_servers=None, balance="round_robin"):
    """Starts a product in front of the members; yields `Running`."""
    setting.directory.mkdir(parents=True, exist_ok=True)
    setting.directory.chmod(0o755)
    address = (LISTEN_ADDRESS, machine.free_port())
    command = COMMANDS[name](setting, address, build, virtual_servers, balance)
    log = setting.directory / "output.log"
    with machine.running(setting.under + command, log, setting.core, setting.directory,
                         setting.stop_signal) as process:
        for address in virtual_servers or [address]:
            machine.wait_until_listening(address, process)
        yield Running(name, process, machine.worker_of(process.pid), address)


def nginx_command(setting, address, _build, _virtual_servers, _balance):
    members = "\n".join(f"        server {host}:{port};" for host, port in setting.members)
    config = fill("nginx.conf", {
        # Callgrind and perf want the one process that does the work.
        "MASTER": "off" if setting.under else "on",
        "USER": "",
        "MEMBERS": members,
        "LISTEN": f"{address[0]}:{address[1]}",
    }, setting.directory / "nginx.conf")
    return ["nginx", "-p", f"{setting.directory}/", "-e", "error.log", "-c", config]


def haproxy_command(setting, address, _build, _virtual_servers, _balance):
    members = "\n".join(f"    server m{index} {host}:{port}"
                        for index, (host, port) in enumerate(setting.members))
    config = fill("haproxy.cfg", {
        "MEMBERS": members,
        "LISTEN": f"{address[0]}:{address[1]}",
    }, setting.directory / "haproxy.cfg")
    return ["haproxy", "-db", "-f", config]


def relay_command(setting, address, build, _virtual_servers, _balance):
    (host, port), = setting.members[:1]
    return [build["weir"], "bench", "relay", f"{address[0]}:{address[1]}", f"{host}:{port}"]


def weir_command(setting, address, build, virtual_servers, balance):
    values = {"MEMBERS": "\n".join(f"      - {host}:{port}" for host, port in setting.members)}
    if virtual_servers:
        values["BALANCE"] = balance
        values["VIRTUAL_SERVERS"] = "\n".join(
            f'  vs{index}: {{ listen: "{host}:{port}", pool: members }}'
            for index, (host, port) in enumerate(virtual_servers))
        config = fill("weir-growth.yaml", values, setting.directory / "weir.yaml")
    else:
        values["LISTEN"] = f"{address[0]}:{address[1]}"
        config = fill("weir.yaml", values, setting.directory / "weir.yaml")
    return [build["weir"], "run", config]


COMMANDS = {
    "weir": weir_command,
    "nginx": nginx_command,
    "haproxy": haproxy_command,
    "relay": relay_command,
}


def build_binaries(names, profile, weir=None):
    """Builds what is ours; returns the paths by product."""
    packages = {"weir": "weir"}
    build = {}
    if weir:
        build["weir"] = pathlib.Path(weir).resolve()
        if not build["weir"].is_file():
            raise machine.BenchError(f"no such file: {weir}")
    for name in names:
        if name not in packages or name in build:
            continue
        if not shutil.which("cargo"):
            raise machine.BenchError("cargo is needed to build weir and the relay")
        command = ["cargo", "build", "--profile", profile, "--quiet", "--locked", "-p", packages[name]]
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            raise machine.BenchError(f"{' '.join(command)} failed")
        target = subprocess.run(["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT,
                                stdout=subprocess.PIPE, check=True, text=True).stdout
        directory = pathlib.Path(json.loads(target)["target_directory"])
        build[name] = directory / {"dev": "debug"}.get(profile, profile) / packages[name]
    return build

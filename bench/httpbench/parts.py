"""The measurements. Each returns rows for the table and keeps its raw data in the run's folder."""

import contextlib
import resource
import signal
import statistics
import subprocess
import time

from . import load, machine, products
from .report import Row

ADC_CORE = 0
LOAD_CORE = 1
CONNECTIONS = 64
OBJECT_128_KIB = 128 * 1024
IDLE_CONNECTIONS = 10_000
# A shared machine disturbs a round now and then; more dropped ones than this per good one fail the run.
ROUNDS_DROPPED_MAX = 3
FIXED_CONNECTIONS = 8
PEERS = ("nginx", "haproxy")


class Plan:
    """What the command line asked for, and where results go."""

    def __init__(self, names, build, directory, rounds, quick, offered_rate):
        self.names = names
        self.build = build
        self.directory = directory
        self.rounds = rounds
        self.quick = quick
        self.offered_rate = offered_rate
        self.origin_port = None
        self.raw = {}

    def pick(self, full, quick):
        return quick if self.quick else full

    def setting(self, part, name, **more):
        members = more.pop("members", [("127.0.0.1", self.origin_port)])
        return products.Setting(self.directory / "tmp" / part / name, members, **more)

    def keep(self, part, record):
        self.raw.setdefault(part, []).append(record)


def better_peer(values):
    """The smallest figure among the peers that ran."""
    return min((values[name] for name in PEERS if name in values), default=None)


def ratio(values, other):
    if other is None or "weir" not in values or not other:
        return None
    return values["weir"] / other


@contextlib.contextmanager
def serving(plan, part):
    """All products of the run at once, pinned; idle ones cost nothing."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(products.start(
            name, plan.setting(part, name, core=ADC_CORE), plan.build)) for name in plan.names]


def measured(product, idle_share, run):
    """Runs a load and returns what it did together with what it cost."""
    core, process = machine.CoreTimes(ADC_CORE), machine.process_times(product.worker_pid)
    result = run()
    spent = machine.CoreTimes(ADC_CORE).since(core)
    after = machine.process_times(product.worker_pid)
    result["idle_share"] = idle_share
    result["core"] = spent
    result["process"] = {kind: after[kind] - process[kind] for kind in after}
    result["busy"] = max(spent["busy"] - idle_share * spent["elapsed"], 0.0)
    return result


def rotation(plan, part, run):
    """Rounds of A B A B; returns per product the list of results, one per round.

    A round in which a product did not get its rate is dropped as a whole, so that ratios stay paired.
    """
    results = {name: [] for name in plan.names}
    with serving(plan, part) as running:
        for product in running:
            run(product, warm_up=True)
        done, dropped = 0, 0
        while done < plan.rounds:
            try:
                one_round = measured_round(plan, running, run)
            except load.RateMissed as error:
                dropped += 1
                print(f"  {part}: round dropped: {error}", flush=True)
                if dropped > ROUNDS_DROPPED_MAX * plan.rounds:
                    raise
                continue
            for name, result in one_round.items():
                plan.keep(part, {"round": done, "product": name, **result})
                results[name].append(result)
            done += 1
            print(f"  {part}: round {done} of {plan.rounds}", flush=True)
    return results


def measured_round(plan, running, run):
    """Every product once, after the machine has come to rest."""
    if not plan.quick:
        machine.wait_until_quiet((ADC_CORE, LOAD_CORE))
    idle_share = machine.idle_busy_share(ADC_CORE, plan.pick(2.0, 0.2))
    return {product.name: measured(product, idle_share, lambda: run(product, warm_up=False))
            for product in running}


def medians(results, figure):
    return {name: statistics.median(figure(result) for result in rounds)
            for name, rounds in results.items() if rounds}


def paired_ratio(results, of, other, figure):
    """Median over the rounds of the ratio within a round: what the machine did then cancels."""
    if of not in results or other not in results:
        return None
    pairs = zip(results[of], results[other])
    # A short round may end within one tick of the accounting.
    ratios = [figure(a) / figure(b) for a, b in pairs if figure(b)]
    return statistics.median(ratios) if ratios else None


def versus_peers(results, figure):
    """The paired ratio to the better peer: the worse of the ratios to each."""
    ratios = [paired_ratio(results, "weir", peer, figure) for peer in PEERS]
    return max((value for value in ratios if value is not None), default=None)


def cpu_rows(results, unit, scale, goal_peer, goal_relay, what):
    def busy(result):
        return result["busy"] / result["requests"] * scale

    def own(result):
        return result["process"]["on_core"] / result["requests"] * scale

    rows = [Row(f"{what}, core busy", unit, medians(results, busy),
                versus_peers(results, busy), goal_peer, "better peer")]
    if goal_relay:
        rows.append(Row(f"{what}, core busy", unit, medians(results, busy),
                        paired_ratio(results, "weir", "relay", busy), goal_relay, "relay"))
    rows.append(Row(f"{what}, process's own time", unit, medians(results, own),
                    versus_peers(results, own), None, "better peer"))
    return rows


def cpu(plan):
    """CPU per 128-byte request at an equal offered rate."""
    requests = plan.pick(5 * plan.offered_rate, plan.offered_rate // 2)

    def run(product, warm_up):
        if warm_up:
            return load.h2load(product.url("/128"), LOAD_CORE, requests // 5, CONNECTIONS)
        return load.h2load(product.url("/128"), LOAD_CORE, requests, CONNECTIONS, plan.offered_rate,
                           rate_counts=not plan.quick)

    results = rotation(plan, "cpu", run)
    return cpu_rows(results, "us/request", 1e6, 0.80, 1.20,
                    f"CPU per request at {plan.offered_rate}/s")


def saturation(plan):
    """Requests per second, as fast as answered."""
    seconds = plan.pick(4, 1)

    def run(product, warm_up):
        return load.wrk(product.url("/128"), LOAD_CORE, 1 if warm_up else seconds, CONNECTIONS)

    results = rotation(plan, "saturation", run)
    rates = medians(results, lambda result: result["rate"])
    busy = medians(results, lambda result: 100 * result["busy"] / result["core"]["elapsed"])
    ratios = [paired_ratio(results, "weir", peer, lambda result: result["rate"]) for peer in PEERS]
    against = min((value for value in ratios if value is not None), default=None)
    return [Row("requests/s at saturation", "1/s", rates, against, None, "better peer"),
            Row("  the ADC's core was busy (100: it was the limit)", "%", busy, None, None, ""),
            *cpu_rows(results, "us/request", 1e6, None, None, "CPU per request at saturation")]


def bulk(plan):
    """CPU per gigabyte of 128 KiB objects at an equal offered rate."""
    rate = plan.pick(2_000, 500)
    requests = plan.pick(4, 1) * rate

    def run(product, warm_up):
        if warm_up:
            return load.h2load(product.url("/128k"), LOAD_CORE, requests // 4, CONNECTIONS)
        return load.h2load(product.url("/128k"), LOAD_CORE, requests, CONNECTIONS, rate,
                           rate_counts=not plan.quick)

    results = rotation(plan, "bulk", run)
    return cpu_rows(results, "ms/GB", 1e3 * 1e9 / OBJECT_128_KIB, 0.90, None,
                    f"CPU per GB of 128 KiB objects at {rate}/s")


def two_lengths(plan):
    """Run lengths whose difference cancels start and stop."""
    return plan.pick((2_000, 12_000), (200, 700))


def user_instructions(plan, part, name, requests, addresses=None, **more):
    """Instructions in user space of a whole run with so many requests."""
    counts = plan.directory / "tmp" / part / name / f"callgrind.{requests}"
    counts.parent.mkdir(parents=True, exist_ok=True)
    under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", "--quiet"]
    setting = plan.setting(part, name, under=under, members=more.pop(
        "members", [("127.0.0.1", plan.origin_port)]))
    with products.start(name, setting, plan.build, **more) as product:
        load.fixed_sequence(addresses or [product.address] * FIXED_CONNECTIONS, requests)
    for line in counts.read_text().splitlines():
        if line.startswith(("summary:", "totals:")):
            total = int(line.split()[1])
            plan.keep(part, {"product": name, "requests": requests, "instructions": total})
            return total
    raise machine.BenchError(f"{counts} has no totals: was the product killed?")


def instructions_per_request(plan, part, name, lengths, **more):
    short, long = (user_instructions(plan, part, name, length, **more) for length in lengths)
    return (long - short) / (lengths[1] - lengths[0])


def instructions(plan):
    """User instructions per request by callgrind, the relay for scale."""
    values = {}
    for name in plan.names:
        print(f"  instructions: {name}", flush=True)
        values[name] = instructions_per_request(plan, "instructions", name, two_lengths(plan))
    return [Row("user instructions per request", "1/request", values,
                ratio(values, values.get("nginx")), 0.4, "nginx"),
            Row("user instructions per request", "1/request", values,
                ratio(values, values.get("haproxy")), 0.3, "haproxy")]


def system_calls(pid, run):
    """System calls that a process makes while a load runs."""
    command = ["perf", "stat", "-x;", "-e", "raw_syscalls:sys_enter", "-p", str(pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as perf:
        # perf has no sign of having attached but its own descriptors; the difference of two run
        # lengths cancels what it missed, as long as it attached before the requests began.
        time.sleep(0.5)
        run()
        perf.send_signal(signal.SIGINT)
        text = perf.stderr.read()
    for line in text.splitlines():
        fields = line.split(";")
        if len(fields) > 2 and fields[2].startswith("raw_syscalls:sys_enter") and fields[0].isdigit():
            return int(fields[0])
    raise machine.BenchError(f"perf counted nothing (it needs root and tracefs):\n{text}")


def syscalls(plan):
    """System calls per request: one request at a time, and 64 connections at once."""
    lengths = two_lengths(plan)
    one, many = {}, {}
    with serving(plan, "syscalls") as running:
        for product in running:
            print(f"  syscalls: {product.name}", flush=True)
            # The members' connections are there before anything is counted.
            load.h2load(product.url("/128"), LOAD_CORE, 2_000, CONNECTIONS)
            runs = {
                "one": (one, lambda count: load.fixed_sequence(
                    [product.address] * FIXED_CONNECTIONS, count)),
                "many": (many, lambda count: load.h2load(
                    product.url("/128"), LOAD_CORE, count, CONNECTIONS)),
            }
            for kind, (values, run) in runs.items():
                counts = [system_calls(product.worker_pid, lambda: run(count)) for count in lengths]
                values[product.name] = (counts[1] - counts[0]) / (lengths[1] - lengths[0])
                plan.keep("syscalls", {"product": product.name, "kind": kind,
                                       "requests": lengths, "system_calls": counts})
    above = one["weir"] - one["relay"] if {"weir", "relay"} <= one.keys() else None
    return [Row("system calls per request, one at a time", "1/request", one, above, 0.2,
                "minus relay"),
            Row("system calls per request, 64 connections", "1/request", many, None, None, "")]


def hold_idle(address, count):
    """Opens so many keep-alive connections, each of which made one request, and returns them."""
    clients = []
    for _ in range(count):
        client = load.Client(address)
        client.get("/128", 128)
        clients.append(client)
    return clients


def memory(plan):
    """Resident memory per idle client connection, and its growth over a million requests."""
    connections = plan.pick(IDLE_CONNECTIONS, 200)
    requests = plan.pick(1_000_000, 5_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, connections + 1_000)), hard))
    per_connection, before_million, growth = {}, {}, {}
    for name in plan.names:
        if name == "relay":
            continue    # it has a member connection per client: another thing
        print(f"  memory: {name}", flush=True)
        with products.start(name, plan.setting("memory", name, core=ADC_CORE), plan.build) as product:
            load.h2load(product.url("/128"), LOAD_CORE, 2_000, CONNECTIONS)
            fresh = machine.memory_bytes(product.worker_pid)
            held = hold_idle(product.address, connections)
            time.sleep(1)
            idle = machine.memory_bytes(product.worker_pid)
            for client in held:
                client.close()
            load.h2load(product.url("/128"), LOAD_CORE, requests // 10, CONNECTIONS)
            warm = machine.memory_bytes(product.worker_pid)
            load.h2load(product.url("/128"), LOAD_CORE, requests, CONNECTIONS)
            after = machine.memory_bytes(product.worker_pid)
        plan.keep("memory", {"product": name, "connections": connections, "requests": requests,
                             "fresh": fresh, "idle": idle, "warm": warm, "after": after})
        per_connection[name] = (idle["resident"] - fresh["resident"]) / connections
        before_million[name] = warm["resident"] / 1024
        growth[name] = (after["resident"] - warm["resident"]) / 1024
    millions = f"{requests / 1e6:g} million"
    return [Row(f"memory per idle connection, {connections} of them", "bytes", per_connection,
                per_connection.get("weir"), 1024, "absolute"),
            Row("resident memory in use", "KiB", before_million, None, None, ""),
            Row(f"  its growth over {millions} requests", "KiB", growth,
                growth.get("weir"), 256, "absolute")]


def growth(plan):
    """Weir's user instructions per request as virtual servers and members grow."""
    if "weir" not in plan.names:
        return []
    # Every member is met in both run lengths, so that connecting to it cancels.
    many = plan.pick(1_000, 100)
    lengths = plan.pick((3 * many, 13 * many), (2 * many, 6 * many))
    rows = []
    port = machine.free_port()

    def addresses(count, second):
        return [(f"127.{second}.{index // 250}.{index % 250 + 1}", port) for index in range(count)]

    def per_request(part, servers, members, balance):
        print(f"  growth: {part}", flush=True)
        # The same number of client connections whatever the number of virtual servers.
        spread = [servers[index * len(servers) // 24] for index in range(24)]
        return instructions_per_request(
            plan, f"growth-{part}", "weir", lengths, addresses=spread, virtual_servers=servers,
            members=[(host, plan.origin_port) for host, _ in members], balance=balance)

    def row(what, few_value, many_value):
        values = {"few": few_value, "many": many_value}
        return Row(what, "1/request", {"weir": many_value}, values["many"] / values["few"], 1.05,
                   f"{few_value:.0f} with few")

    rows.append(row(f"user instructions, 24 -> {many} virtual servers",
                    per_request("24-servers", addresses(24, 10), addresses(2, 1), "round_robin"),
                    per_request(f"{many}-servers", addresses(many, 10), addresses(2, 1),
                                "round_robin")))
    for balance in ("round_robin", "least_connections"):
        rows.append(row(f"user instructions, 2 -> {many} members, {balance}",
                        per_request(f"2-members-{balance}", addresses(24, 10), addresses(2, 1),
                                    balance),
                        per_request(f"{many}-members-{balance}", addresses(24, 10),
                                    addresses(many, 1), balance)))
    return rows


PARTS = {
    "cpu": (cpu, ["h2load"]),
    "saturation": (saturation, ["wrk"]),
    "instructions": (instructions, ["valgrind"]),
    "syscalls": (syscalls, ["perf", "h2load"]),
    "bulk": (bulk, ["h2load"]),
    "memory": (memory, ["h2load"]),
    "growth": (growth, ["valgrind"]),
}

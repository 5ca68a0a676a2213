#!/usr/bin/env python3
"""The optimizer step on the CPU: Strata against PyTorch's AdamW and DeepSpeed's CPUAdam, interleaved in one run.

For each number of threads it times, `--rounds` times in turn, on `--count` parameters with fp32 state:

  update   an update of the fp32 state that also gives the bf16 weight
  step     the whole offloaded step: a bf16 gradient comes in, its norm is taken, it is unscaled and clipped, the state
           is updated, a bf16 weight goes out
  clipped  the same with a norm that is known before, as when a GPU has computed it: without the pass that sums squares

Peers get what is best for them: buffers that are made once, no copies in double, huge pages, torch's fused AdamW where
torch has one. Before each round the time of a cache line from core to core is taken: on a virtual machine the placement
of its cores changes memory bandwidth by 1.7x, and all sides of a round meet the same one.

Needs a Python with torch, a compiler and ninja for DeepSpeed's kernel (its source is downloaded with pip into
build/peers and built there unchanged), and `strata_step`, made by -DSTRATA_BENCH=ON. What does not install is a row
that says so."""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEARNING_RATE, WEIGHT_DECAY, EPSILON, BETAS, MAX_NORM = 1e-4, 0.01, 1e-8, (0.9, 0.999), 1.0


def gradient(torch, count):
    """The values that Strata's side has: +-1e-4 * (1 + i % 1009)."""
    g = torch.empty(count, dtype=torch.bfloat16)
    piece = 1009 * 2 * 4096
    i = torch.arange(piece)
    values = ((1 + i % 1009).float() * 1e-4 * (1 - 2 * (i % 2)).float()).bfloat16()
    for begin in range(0, count, piece):
        g[begin:begin + piece] = values[:min(piece, count - begin)]
    return g


class TorchSide:
    """fp32 parameter with torch.optim.AdamW, bf16 working weight beside it."""

    def __init__(self, torch, count):
        self.torch = torch
        self.p = torch.nn.Parameter(torch.zeros(count))
        self.p.grad = torch.zeros(count)
        self.weight = torch.zeros(count, dtype=torch.bfloat16)
        self.gradient = gradient(torch, count)
        self.optimizer, self.name = self.make_optimizer()

    def make_optimizer(self):
        options = dict(lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, weight_decay=WEIGHT_DECAY)
        adamw, torch_name = self.torch.optim.AdamW, f"torch {self.torch.__version__}"
        try:
            return adamw([self.p], fused=True, **options), torch_name + " fused AdamW"
        except (RuntimeError, TypeError):
            return adamw([self.p], **options), torch_name + " AdamW"

    def update(self):
        self.optimizer.step()
        with self.torch.no_grad():
            self.weight.copy_(self.p)

    def step(self):
        self.p.grad.copy_(self.gradient)
        self.torch.nn.utils.clip_grad_norm_([self.p], MAX_NORM)
        self.update()

    def clipped(self):
        self.p.grad.copy_(self.gradient)
        self.p.grad.mul_(1e-3)
        self.update()


class DeepSpeedSide:
    """ZeRO's offloaded step: gradient to fp32, norm, scale, CPUAdam, weight to bf16."""

    def __init__(self, torch, count, options):
        self.torch = torch
        self.kernel = build_deepspeed(options)
        self.name = f"DeepSpeed {options.deepspeed} CPUAdam"
        self.kernel.create_adam(0, LEARNING_RATE, BETAS[0], BETAS[1], EPSILON, WEIGHT_DECAY, True, False)
        self.p, self.g, self.m, self.v = (torch.zeros(count) for _ in range(4))
        self.weight = torch.zeros(count, dtype=torch.bfloat16)
        self.gradient = gradient(torch, count)
        self.steps = 0

    def update(self):
        self.steps += 1
        self.kernel.adam_update(0, self.steps, LEARNING_RATE, BETAS[0], BETAS[1], EPSILON, WEIGHT_DECAY, True,
                                self.p, self.g, self.m, self.v)
        self.weight.copy_(self.p)

    def step(self):
        self.g.copy_(self.gradient)
        norm = float(self.torch.linalg.vector_norm(self.g))
        self.g.mul_(min(1.0, MAX_NORM / (norm + 1e-6)))
        self.update()

    def clipped(self):
        self.g.copy_(self.gradient)
        self.g.mul_(1e-3)
        self.update()


def cpu_flags():
    with open("/proc/cpuinfo") as file:
        return next((line.split() for line in file if line.startswith("flags")), [])


def simd_flags():
    """As DeepSpeed's op builder chooses them."""
    flags = cpu_flags()
    if "avx512f" in flags:
        return ["-D__AVX512__"]
    return ["-D__AVX256__"] if "avx2" in flags else []


def deepspeed_source(options):
    folder = os.path.join(options.work, f"deepspeed-{options.deepspeed}")
    if not os.path.isdir(folder):
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                    "--no-build-isolation", f"deepspeed=={options.deepspeed}", "-d", options.work]
        subprocess.run(download, check=True)
        subprocess.run(["tar", "-xzf", folder + ".tar.gz", "-C", options.work], check=True)
    return folder


def build_deepspeed(options):
    import torch
    from torch.utils import cpp_extension
    source = deepspeed_source(options)
    build = os.path.join(options.work, f"cpu_adam-{options.deepspeed}-torch{torch.__version__}")
    os.makedirs(build, exist_ok=True)
    lock = os.path.join(build, "lock")
    if os.path.exists(lock):  # left by a build that was killed: torch would wait for it for ever
        os.remove(lock)
    return cpp_extension.load(
        name="cpu_adam",
        sources=[os.path.join(source, "csrc", "adam", name) for name in ("cpu_adam.cpp", "cpu_adam_impl.cpp")],
        extra_include_paths=[os.path.join(source, "csrc", "includes")],
        extra_cflags=["-O3", "-fopenmp", "-march=native", "-D__DISABLE_CUDA__", *simd_flags()],
        extra_ldflags=["-fopenmp"], build_directory=build)


class StrataSide:
    def __init__(self, options, layout):
        self.name = f"Strata {layout}"
        # The whole step begins with a bf16 gradient.
        self.works = options.work_kinds if layout.startswith("bf16/") else ["update"]
        self.process = subprocess.Popen([options.strata_step, str(options.count), str(options.threads), layout],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit("strata_step did not start")

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def seconds(self, work):
        return self.ask("update" if work == "clipped" else work)  # its update clips by itself

    def weight(self):
        return self.ask("weight")


class PeerSide:
    def __init__(self, peer, options):
        self.peer, self.name, self.works = peer, peer.name, options.work_kinds

    def seconds(self, work):
        begin = time.perf_counter()
        getattr(self.peer, work)()
        return time.perf_counter() - begin

    def weight(self):
        weight = self.peer.weight
        return sum(float(part.double().abs().sum()) for part in weight.split(1 << 22)) / len(weight)


def attempt(make, name, options, missing):
    try:
        return [PeerSide(make(), options)]
    except Exception as error:  # whatever keeps a peer from installing is told, not fatal
        missing[name] = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return []


def check_same_work(sides):
    """After one step from equal states, weights agree: all sides do the same work."""
    weights = {}
    for side in sides:
        side.seconds("step")
        weights[side.name] = side.weight()
    reference = next(iter(weights.values()))
    for name, weight in weights.items():
        if not abs(weight - reference) <= 1e-2 * reference:
            sys.exit(f"{name} does other work: mean |weight| {weight:.6g}, {sides[0].name} {reference:.6g}")


def sample(side, work, options):
    time.sleep(options.settle)  # until the threads of the side before have gone to sleep
    return side.seconds(work)


def worker(options):
    """All samples for one number of threads, as JSON on the last line."""
    import torch
    torch.set_num_threads(options.threads)
    missing = {}
    sides = [StrataSide(options, layout) for layout in options.layouts]
    sides += attempt(lambda: DeepSpeedSide(torch, options.count, options), "DeepSpeed CPUAdam", options, missing)
    sides += attempt(lambda: TorchSide(torch, options.count), "PyTorch AdamW", options, missing)
    check_same_work(sides)
    samples = {side.name: {work: [] for work in side.works} for side in sides}
    pings = []
    for _ in range(options.rounds):
        pings.append(sides[0].ask("ping"))
        for work in options.work_kinds:
            able = [side for side in sides if work in side.works]
            for side in random.sample(able, len(able)):
                samples[side.name][work].append(sample(side, work, options))
    print(json.dumps({"num_threads": options.threads, "num_parameters": options.count, "ping_ns": pings,
                      "seconds": samples, "missing": missing}))


def run_worker(options, threads):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    environment.update(OMP_NUM_THREADS=str(threads), GLIBC_TUNABLES="glibc.malloc.hugetlb=1")
    command = [sys.executable, os.path.abspath(__file__), *options.arguments, "--worker", str(threads)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"the run with {threads} threads failed")
    return json.loads(done.stdout.splitlines()[-1])


def with_range(values, digits=3):
    return f"{statistics.median(values):.{digits}g} ({min(values):.{digits}g}-{max(values):.{digits}g})"


def show(result, work_kinds):
    count, pings = result["num_parameters"], result["ping_ns"]
    print(f"\n{result['num_threads']} threads, {count:.3g} parameters; ping {with_range(pings)} ns")
    print(f"{'':44} " + " ".join(f"{work + ' Mparam/s':>24}" for work in work_kinds))
    for name, works in result["seconds"].items():
        cells = [with_range([count / s / 1e6 for s in works[w]], 4) if w in works else "-" for w in work_kinds]
        print(f"{name:44} " + " ".join(f"{cell:>24}" for cell in cells))
    for name, reason in result["missing"].items():
        print(f"{name:44} not installed: {reason}")
    show_ratios(result, work_kinds)


def show_ratios(result, work_kinds):
    """Medians of each round's ratio: both sides of it met the same placement."""
    ours = {name: works for name, works in result["seconds"].items() if name.startswith("Strata")}
    for peer, theirs in result["seconds"].items():
        if peer in ours:
            continue
        for name, works in ours.items():
            ratios = {w: [b / a for a, b in zip(works[w], theirs[w])] for w in work_kinds if w in works}
            print(f"  {name} against {peer}: " + ", ".join(f"{w} {with_range(r)}x" for w, r in ratios.items()))


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=lambda text: int(float(text)), default=100_000_000, help="parameters")
    parser.add_argument("--threads", default="1,%d" % len(os.sched_getaffinity(0)), help="numbers of threads")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--layouts", default="f32/f32/f32,bf16/f32/f32,bf16/split/f32",
                        help="of Strata: gradient/master/moments")
    parser.add_argument("--deepspeed", default="0.19.8", help="version of the source")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="folder of Strata's build")
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "peers"), help="where peers are built")
    parser.add_argument("--settle", type=float, default=0.02, help="seconds of rest before each sample")
    parser.add_argument("--json", help="write all samples to this file")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.arguments = arguments
    options.layouts = options.layouts.split(",")
    options.work_kinds = ["update", "step", "clipped"]
    options.work = os.path.abspath(options.work)
    options.strata_step = os.path.join(options.build, "bin", "strata_step")
    return options


def main():
    options = parse_arguments(sys.argv[1:])
    os.makedirs(options.work, exist_ok=True)
    if not os.path.exists(options.strata_step):
        sys.exit(f"{options.strata_step} is missing: configure with -DSTRATA_BENCH=ON and build the target strata_step")
    if options.worker:
        options.threads = int(options.worker)
        return worker(options)
    print(f"load average {os.getloadavg()[0]:.1f} before; medians (lowest-highest) of {options.rounds} rounds, "
          "sides in random order")
    if os.getloadavg()[0] > 0.5:
        print("warning: others use this machine. OpenMP's barriers wait for threads that were put aside, so that peers "
              "suffer more than Strata")
    results = [run_worker(options, int(threads)) for threads in options.threads.split(",")]
    for result in results:
        show(result, options.work_kinds)
    print(f"\nload average {os.getloadavg()[0]:.1f} after")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"format": "strata-peers", "schema_version": 1, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()

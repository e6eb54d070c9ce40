# SPDX-License-Identifier: Apache-2.0
"""The figures of GPUs in README.md and resources/records/README.md, made of what tests/gpu/adopt adopted and of nothing else:
records in resources/records/GPU-*.json, comparisons with PyTorch in tests/data/gpu/GPU/. A figure whose document is missing
has no line. What is left out: the raw samples and bands, which the records hold."""
import json
import re

BEGIN, END = "<!-- figures of GPUs: written by tests/gpu/adopt, not by hand -->", "<!-- end of the figures of GPUs -->"
NONE_README = ("No figure of a GPU is claimed here: the CUDA module is compiled and its arithmetic tested, but no recorded run ships yet.\n"
               "`tests/gpu/run` makes one where there is a GPU (`tests/gpu/README.md`).")
NONE_RECORDS = "There is no recorded run of a GPU yet: `tests/gpu/run` makes them where there is one, `tests/gpu/adopt` puts them here."


class Unmarked(Exception):
    """A document has no place for the figures."""


def short_name(identity):
    return identity.removeprefix("nvidia-")


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


class Gpu:
    """What was adopted of one kind of GPU."""

    def __init__(self, root, device):
        self.short = short_name(device["id"])
        self.name = device["name"]
        prefix = self.short + "-"
        others = {short_name(load(file)["id"]) for file in (root / "resources/devices").glob("*.json")}
        longer = tuple(f"{other}-" for other in others if other.startswith(prefix))
        self.records = {file.stem.removeprefix(prefix): load(file) for file in sorted((root / "resources/records").glob(prefix + "*.json"))
                        if not (longer and file.stem.startswith(longer))}
        self.comparisons = {file.stem: load(file) for file in sorted((root / "tests/data/gpu" / self.short).glob("*.json"))}

    def figure(self, record, key, side="measured"):
        found = ((self.records.get(record) or {}).get(side) or {}).get("figures", {}).get(key)
        return found["value"] if found and isinstance(found["value"], (int, float)) else None

    def provenance(self):
        return next(iter(self.records.values()))["provenance"]


def gpus(root):
    devices = [load(file) for file in sorted((root / "resources/devices").glob("*.json"))]
    found = [Gpu(root, device) for device in devices if device["kind"] == "gpu"]
    return [gpu for gpu in found if gpu.records]


def percent(share):
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


# ---- lines of the table: (what, measured, beside) ------------------------------------------------------------------


def copy_lines(gpu):
    for row in gpu.comparisons.get("copy", {}).get("rows", []):
        if row.get("share") is not None:
            ours, torch = row["bytes_per_second"]["ours"], row["bytes_per_second"]["torch"]
            yield (f"copy of {row['working_set'] / 2 / 2**30:g} GiB", f"{ours / 1e12:.2f} TB/s",
                   f"PyTorch {torch / 1e12:.2f} TB/s: {percent(row['share'])}; goal 95 %")


def transposition_lines(gpu):
    """Beside a copy of as many bytes by us."""
    copies = next((one for one in (gpu.records.get("copy") or {}).get("measured", {}).get("series", []) if one["key"] == "bandwidth"), None)
    best = max((y for y in copies["y"]["values"] if y), default=None) if copies else None
    for name in ("float32", "bfloat16"):
        rate = gpu.figure(f"layout-transpose-{name}", "copy_bandwidth")
        if rate:
            shape = gpu.records[f"layout-transpose-{name}"]["parameters"]["shape"].replace(",", " × ")
            yield (f"transposition of {shape}, {name}", f"{rate / 1e12:.2f} TB/s",
                   f"a copy {best / 1e12:.2f} TB/s: {percent(rate / best)}; goal 90 %" if best else "")


def attention_lines(gpu):
    goals = {("forward", False): "; goal 330, stretch 500", ("backward", False): "; goal 190"}
    for name in sorted(gpu.comparisons):
        for row in gpu.comparisons[name].get("rows", []) if name.startswith("attention") else []:
            case, rates = row["case"], row.get("tflops", {})
            if case["sequence"] == 8192 and case["head_dim"] == 128 and "ours" in rates:
                yield (f"flash attention {case['pass']}, d 128, 8192{', causal' if case['causal'] else ''}, bf16", f"{rates['ours']:.0f} TFLOP/s",
                       ", ".join(f"{side.removeprefix('torch ')} {rate:.0f}" for side, rate in rates.items() if side.startswith("torch"))
                       + goals.get((case["pass"], case["causal"]), ""))


def product_lines(gpu):
    for name in sorted(gpu.comparisons):
        for row in gpu.comparisons[name].get("rows", []) if name.startswith("matmul") else []:
            shares = {int(size): ratio for size, ratio in row.get("ratio", {}).items()}
            if shares:
                size = max(shares)
                seconds = row["sizes"][str(size)]["seconds"]["ours"]
                yield (f"product of {size}³, {row['format']}", f"{2 * size**3 / seconds / 1e12:.0f} T/s",
                       ", ".join(f"{one}: {percent(share)}" for one, share in sorted(shares.items())) + " of torch.matmul; goal 95 %")


def step_lines(gpu):
    predicted, measured = (gpu.figure("checkpoint-sqrt", "peak", side) for side in ("predicted", "measured"))
    if predicted and measured:
        yield ("peak of a checkpointed chain (√n)", f"{measured / 2**20:.0f} MiB", f"predicted {predicted / 2**20:.0f} MiB")
    for name in sorted(gpu.comparisons):
        for row in gpu.comparisons[name].get("rows", []) if name.startswith("train-") else []:
            if row.get("ratio"):
                yield (f"training step in {row['format']}, mixed precision", f"{row['seconds']['ours'] * 1e3:.2f} ms",
                       ", ".join(f"{percent(share)} of {side}'s speed" for side, share in row["ratio"].items()))
    for name in ("training-memory", "inference-memory"):
        for kind, peaks in gpu.comparisons.get(name, {}).get("summary", {}).items():
            yield (f"peaks of {peaks['cases']} networks in PyTorch, {kind}", "allocated bytes",
                   f"predicted within {percent(peaks['mean_error'])} on average, {percent(peaks['worst_error'])} at worst")


def prediction_lines(gpu):
    """Every record: how far the predicted curve is from the measured one."""
    for name, record in gpu.records.items():
        series = (record.get("comparison") or {}).get("series", {})
        errors = [f"{key.replace('_', ' ')} {percent(one['median_error'])}" for key, one in series.items()
                  if isinstance(one.get("median_error"), (int, float))]
        basis = (record.get("device") or {}).get("basis", "")
        yield (name, record["provenance"]["grade"], f"{', '.join(errors[:3]) or 'no curve'} ({basis})")


def table(head, lines):
    rows = [head, tuple("---" for _ in head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


# ---- the documents -------------------------------------------------------------------------------------------------


def readme_block(found):
    parts = []
    for gpu in found:
        told = gpu.provenance()
        parts.append(f"Measured on an {gpu.name} (driver {told['driver']}, {told['time'][:10]}; records in `resources/records/`, "
                     f"comparisons in `tests/data/gpu/{gpu.short}/`):\n")
        lines = [line for of in (copy_lines, transposition_lines, attention_lines, product_lines, step_lines) for line in of(gpu)]
        if lines:
            parts.append(table(("what", "measured", "beside"), lines) + "\n")
        parts.append(table(("record", "grade", "predicted against measured, medians over the curve"), prediction_lines(gpu)) + "\n")
    return "\n".join(parts).rstrip("\n") or NONE_README


def records_block(found):
    lines = [(f"`{gpu.short}-{name}.json`", gpu.name, f"`{record['experiment']}`, grade {record['provenance']['grade']}")
             for gpu in found for name, record in gpu.records.items()]
    return table(("file", "device", "what"), lines) if lines else NONE_RECORDS


def with_block(path, block):
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise Unmarked(f"{path}: the lines \"{BEGIN}\" and \"{END}\" must be there once each")
    return re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: f"{BEGIN}\n{block}\n{END}", text, flags=re.DOTALL)


def documents(root):
    """The whole text of both documents, by path."""
    found = gpus(root)
    return {path: with_block(path, block) for path, block in ((root / "README.md", readme_block(found)),
                                                              (root / "resources/records/README.md", records_block(found)))}

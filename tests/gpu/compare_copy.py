# SPDX-License-Identifier: Apache-2.0
"""Our copy bandwidth against PyTorch's at the same sizes: compare_copy.py TORCH RECORD… OUT.

Ends with 1 when the better of our runs reaches less than 95 % at any size."""
import json
import sys

GOAL = 0.95


def measured(path: str) -> dict:
    """Working set → bandwidth of a hierarchy record."""
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    for series in record["measured"]["series"]:
        if series["key"] == "bandwidth":
            return dict(zip(series["x"]["values"], series["y"]["values"]))
    sys.exit(f"{path} has no bandwidth series")


torch_path, *record_paths, out_path = sys.argv[1:]
with open(torch_path, encoding="utf-8") as file:
    torch = json.load(file)
runs = [measured(path) for path in record_paths]
rows = []
for copy in torch["copies"]:
    size = copy["working_set"]
    ours = [run[size] for run in runs if run.get(size) is not None]
    if not ours:
        sys.exit(f"our runs have no point at {size} bytes")
    share = max(ours) / copy["bytes_per_second"]
    rows.append({"working_set": size, "ours": ours, "pytorch": copy["bytes_per_second"], "share": share})
    print(f"copy of {size / 2 ** 30:g} GiB: ours {max(ours) / 1e12:.3f} TB/s, "
          f"PyTorch {copy['bytes_per_second'] / 1e12:.3f} TB/s, {share:.1%}")
with open(out_path, "w", encoding="utf-8") as file:
    json.dump({"goal": GOAL, "torch": torch["torch"], "rows": rows}, file, indent=2)
sys.exit(0 if all(row["share"] >= GOAL for row in rows) else 1)

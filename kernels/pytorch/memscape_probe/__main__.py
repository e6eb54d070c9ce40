# SPDX-License-Identifier: Apache-2.0
"""python3 -m memscape_probe COMMAND: the commands are modules, imported when they are asked for."""
import importlib
import sys

COMMANDS = {
    "facts": ("memscape_probe.facts", "which Python and torch these are: one JSON line"),
    "worker": ("memscape_probe.worker", "measure for Memscape: JSON lines on standard input and output"),
    "run": ("memscape_probe.run", "record the memory of a training script into a run file"),
}


def usage():
    lines = ["usage: python3 -m memscape_probe COMMAND …", ""]
    return "\n".join(lines + [f"  {name:8} {what}" for name, (_, what) in COMMANDS.items()])


def main(words):
    if not words or words[0] not in COMMANDS:
        print(usage(), file=sys.stderr)
        return 0 if words[:1] in (["--help"], ["-h"]) else 2
    module, _ = COMMANDS[words[0]]
    return importlib.import_module(module).main(words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

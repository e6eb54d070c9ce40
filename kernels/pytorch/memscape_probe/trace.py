# SPDX-License-Identifier: Apache-2.0
"""The last step of a recording as tables that a JSON line holds: `events` is a list of numbers, row after row.

    an allocation   bytes, block, module, name, category, phase, micro-batch      (bytes > 0)
    a free          0, block, phase, micro-batch

Blocks count from 1. module and name index `modules` and `names`, category `categories`, phase PHASES. What was alive
before the step comes first, in the phase "setup"."""

PHASES = ["setup", "forward", "backward", "optimizer", "zero_grad"]
CATEGORIES = {"parameter": "weights", "gradient": "gradients", "optimizer_state": "optimizer_state", "activation": "activations",
              "temporary": "temporary", "input": "input", "unknown": "unknown", "master": "master_weights", "cache": "key_value_cache",
              "workspace": "workspace"}
OF_COLLECTOR = {"forward": "forward", "backward": "backward", "optimizer": "optimizer", "other": "optimizer"}


class Table:
    """Texts and their numbers."""

    def __init__(self):
        self.texts, self.numbers = [""], {"": 0}

    def number(self, text):
        text = text or ""
        if text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return self.numbers[text]


class StepTrace:
    """labels: address -> category of what the collector cannot know (inputs, master copies). unseen: bytes on the device
    that no tensor holds. kept: address -> category of what the last allocation there is for."""

    def __init__(self, recording, labels, unseen=0, granularity=1, kept=None):
        self.modules, self.names, self.events = Table(), Table(), []
        self.categories = list(CATEGORIES.values())
        self.blocks, self.sizes = {}, []  # address -> block, bytes of each block
        self.live, self.granularity = 0, granularity
        self.peak, self.peaks = 0, {}
        self.phase = ("setup", 0)
        if unseen > 0:
            self.allocate(-1, unseen, "", "library workspace", "workspace")
        first, end = last_step(recording)
        for block in alive_before(recording, first):
            self.allocate(block.address, block.bytes, block.module, block.name or getattr(block, "operator", None),
                          labels.get(block.address, block.category))
        events = recording.events[first:end]
        last = {event.address: i for i, event in enumerate(events) if event.action == "alloc"}
        of_event = {last[address]: category for address, category in (kept or {}).items() if address in last}
        for i, event in enumerate(events):
            self.add(event, labels, of_event.get(i))

    def add(self, event, labels, category):
        self.phase = phase_of(event)
        if event.action == "free":
            self.free(event.address)
        elif event.action == "alloc":
            if category is None:
                category = labels.get(event.address, event.category) if event.category == "unknown" else event.category
            self.allocate(event.address, event.bytes, event.module, event.name or event.operator, category)

    def allocate(self, address, size, module, name, category):
        size = -(-size // self.granularity) * self.granularity
        if size <= 0 or address in self.blocks:
            return
        block = len(self.sizes) + 1
        self.sizes.append(size)
        self.blocks[address] = block
        module = plain_path(module)
        name = plain_path(name)
        if module and name.startswith(module + "."):
            name = name[len(module) + 1:]
        elif category in ("parameter", "gradient", "optimizer_state") and "." in name:
            module, _, name = name.rpartition(".") if category != "optimizer_state" else split_state(name)
        self.count(size)
        self.events += [size, block, self.modules.number(module), self.names.number(name),
                        self.categories.index(CATEGORIES.get(category, "unknown")), PHASES.index(self.phase[0]), self.phase[1]]

    def free(self, address):
        block = self.blocks.pop(address, None)
        if block is not None:
            self.count(-self.sizes[block - 1])
            self.events += [0, block, PHASES.index(self.phase[0]), self.phase[1]]

    def count(self, change):
        self.live += change
        self.peak = max(self.peak, self.live)
        self.peaks[self.phase] = max(self.peaks.get(self.phase, 0), self.live)

    def to_json(self):
        return {"modules": self.modules.texts, "names": self.names.texts, "categories": self.categories, "phases": PHASES,
                "events": self.events}


def last_step(recording):
    """[first, end) of the events in the regions of the last step: before them the loop lets go of the step before."""
    if not recording.steps:
        return 0, len(recording.events)
    first, end = recording.steps[-1].first, recording.steps[-1].last
    while first < end and not recording.events[first].region:
        first += 1
    return first, end


def alive_before(recording, first):
    """Blocks that live when the event of that index comes: those that existed, and what earlier events made."""
    alive = {block.address: block for block in recording.existing}
    for event in recording.events[:first]:
        if event.action == "alloc":
            alive[event.address] = event
        elif event.action == "free":
            alive.pop(event.address, None)
    return alive.values()


def phase_of(event):
    """By the region that the loop opened ("backward 2"), else by what the collector saw."""
    word, _, number = (event.region or "").partition(" ")
    if word in PHASES:
        return word, int(number or 0)
    return OF_COLLECTOR.get(event.phase, "optimizer"), 0


def plain_path(path):
    """Without the wrappers of PEFT and of DistributedDataParallel."""
    for wrapper in ("base_model.model.", "module."):
        if path and path.startswith(wrapper):
            path = path[len(wrapper):]
    return path or ""


def split_state(name):
    """"blocks.0.fc.weight.exp_avg": the module, a dot, the state's own name."""
    parameter, _, key = name.rpartition(".")
    return parameter.rpartition(".")[0], ".", key

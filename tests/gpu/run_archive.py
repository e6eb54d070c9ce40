# SPDX-License-Identifier: Apache-2.0
"""Whether the results.tar.gz of tests/gpu/run is whole, and what of it can be kept.

Whole: the sums of all files; every step of the stages that were begun ended well (or is named as one to do without); each
of its records is a measurement of one GPU of the catalogue by a finished run, of grade A to C, valid to memscape-cli check;
each comparison with PyTorch is of the same GPU and was not cut short. Every fault is found before anything is said."""
import fnmatch
import hashlib
import json
import pathlib
import re
import subprocess
import tarfile

LARGEST = 64 << 20  # bytes of one file: a record of a GPU has less than one
NEEDED = ("program", "version", "time", "device_name", "driver", "grade", "status")
KEPT_STAGES = "ABC"  # D is NVIDIA's tools, read by people


class Refused(Exception):
    """Names the file and the place of every fault."""


def read_archive(path):
    """Bytes by name; faults of the archive itself end it."""
    files = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                name = pathlib.PurePosixPath(member.name)
                if not member.isfile() or name.is_absolute() or ".." in name.parts or member.size > LARGEST:
                    raise Refused(f"{path}: {member.name} is no file that a run leaves")
                files[str(name)] = archive.extractfile(member).read()
    except (OSError, EOFError, tarfile.TarError) as error:
        raise Refused(f"{path} cannot be read to its end: {error}") from error
    return files


def faults_of_sums(files):
    listed = {}
    for line in files.get("MANIFEST.sha256", b"").decode(errors="replace").splitlines():
        total, _, name = line.partition("  ")
        listed[name] = total
    if not listed:
        return ["MANIFEST.sha256 is missing: this is no archive of tests/gpu/run"]
    faults = [f"{name} is missing" for name in listed if name not in files]
    faults += [f"{name} is not in MANIFEST.sha256" for name in files if name not in listed and name != "MANIFEST.sha256"]
    return faults + [f"{name} was changed: its sum differs" for name, total in listed.items()
                     if name in files and hashlib.sha256(files[name]).hexdigest() != total]


def steps_of(files):
    """(stage, result) by step."""
    steps = {}
    for name, content in files.items():
        if name.startswith("steps/"):
            words = content.decode(errors="replace").rstrip("\n").split("\t")
            steps[name.removeprefix("steps/")] = (words[0], words[2]) if len(words) >= 3 else ("?", "unreadable")
    return steps


def planned(run, stage):
    """The documents that each step of a stage makes, by step, as the script says them."""
    done = subprocess.run([str(run), "--stage", stage, "--dry-run"], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines()[:-1] if line.strip()]
    return {line.split()[0]: re.findall(r"WORK/((?:records|compare)/[\w.-]+\.json)", line) for line in lines}


def is_named(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def is_whole_comparison(content):
    """Every case of it was measured on both sides."""
    try:
        document = json.loads(content or b"")
        rows = document["rows"]
        return bool(document.get("whole", all(row.get("share") for row in rows)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def documents_of_steps(files, run, without, faults):
    """Names of the documents to keep: those of every step of the stages that were begun."""
    steps, kept = steps_of(files), []
    for stage in sorted({stage for stage, _ in steps.values()} & set(KEPT_STAGES)):
        for name, documents in planned(run, stage).items():
            if is_named(name, without):
                continue
            result = steps.get(name, (stage, "missing"))[1]
            if result == "failed" and documents and all(is_whole_comparison(files.get(document)) for document in documents):
                result = "ok"  # it missed its goal: what it measured stands
            if result != "ok":
                faults.append(f"steps/{name}: {result} (stage {stage}; --without {name} adopts the rest)")
            faults += [f"{document}: missing" for document in documents if result == "ok" and document not in files]
            kept += [document for document in documents if document in files]
    return kept


def parsed(name, content, faults):
    try:
        document = json.loads(content)
    except ValueError as error:
        faults.append(f"{name}: not whole JSON: {error}")
        return None
    if not isinstance(document, dict):
        faults.append(f"{name}: an object was expected")
        return None
    return document


def faults_of_record(name, record):
    provenance = record.get("provenance")
    if record.get("format") != "memscape-record" or not isinstance(provenance, dict):
        return [f"{name}: no record with a provenance"]
    faults = [f"{name}: provenance.{key} is missing" for key in NEEDED if not provenance.get(key)]
    if "fake" in provenance:
        faults.append(f"{name}: provenance.fake: the tests' GPU made it, nothing was measured")
    if provenance.get("backend") != "cuda":
        faults.append(f"{name}: provenance.backend is {provenance.get('backend')!r}, not 'cuda'")
    if provenance.get("status") not in (None, "ok"):
        faults.append(f"{name}: provenance.status is {provenance['status']!r}: the run did not end")
    if provenance.get("grade") == "D":
        faults.append(f"{name}: provenance.grade is D: {provenance.get('reason')}")
    return faults + [f"{name}: {side} is empty" for side in ("predicted", "measured") if not record.get(side)]


def faults_of_check(cli, folder, names):
    """What memscape-cli itself refuses."""
    faults = []
    for name in names:
        done = subprocess.run([str(cli), "check", str(folder / f"{name}.json")], capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip() or str(done.returncode)).replace(f"{folder}/{name}.json: ", "")
            faults.append(f"records/{name}.json: memscape-cli check: {said}")
    return faults


def device_of(seen, catalogue, faults):
    """(id, name) of the one GPU that all documents name. `seen`: device name by file."""
    names = sorted(set(seen.values()))
    if len(names) != 1:
        first = {name: next(file for file, other in seen.items() if other == name) for name in names}
        faults.append("more than one device: " + ", ".join(f"{name!r} ({file})" for name, file in first.items()) if names
                      else "no document names a device")
        return None
    for file in sorted(catalogue.glob("*.json")):
        device = json.loads(file.read_text(encoding="utf-8"))
        if names[0] in device.get("product_names", []):
            return device["id"], names[0]
    faults.append(f"{next(iter(seen))}: {names[0]!r} is no GPU of the catalogue (resources/devices, product_names)")
    return None


class Run:
    """What of a whole archive is kept: bytes by name, and the GPU's (id, name)."""

    def __init__(self, files, root, cli, without, scratch):
        faults = faults_of_sums(files)
        if faults:
            raise Refused("\n".join(faults))
        kept = documents_of_steps(files, root / "tests/gpu/run", without, faults)
        self.records = {pathlib.PurePath(name).stem: files[name] for name in kept if name.startswith("records/")}
        self.comparisons = {pathlib.PurePath(name).stem: files[name] for name in kept if name.startswith("compare/")}
        if not self.records:
            faults.append("records/ holds no record of a step that ended well")
        seen = {}
        for name in kept:
            self.judge(name, parsed(name, files[name], faults), seen, faults)
        for name, content in self.records.items():
            (scratch / f"{name}.json").write_bytes(content)
        faults += faults_of_check(cli, scratch, sorted(self.records))
        self.device = device_of(seen, root / "resources/devices", faults)
        if faults:
            raise Refused("\n".join(faults))

    @staticmethod
    def judge(name, document, seen, faults):
        """The faults of one document; the device that it names into `seen`."""
        if document is None:
            return
        if name.startswith("records/"):
            faults += faults_of_record(name, document)
            provenance = document.get("provenance")
            seen[name] = str(provenance.get("device_name")) if isinstance(provenance, dict) else "None"
        else:
            seen[name] = str(document.get("gpu") or document.get("device"))
            if document.get("whole") is False:
                faults.append(f"{name}: whole is false: it was cut short")

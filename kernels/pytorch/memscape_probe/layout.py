# SPDX-License-Identifier: Apache-2.0
"""`layout`: reads through a view, the copy that contiguous() makes of it, and reads of the copy, in turn, each after one of its own kind.

The view is made by PyTorch itself from the operations of the parameters; its sizes, strides and offset are held against those that
Memscape's rules gave, and its copy against addresses computed from them.

What reads a tensor in PyTorch is an operator, and an operator may walk in an order of its own: a sum walks as memory lies, whatever the
view. Element by element (neg; logical_not of a mask) into a result that lies densely, the walk is the result's: the last dimension
fastest, or of the dimensions in reverse for walk=first-fastest. So a read here writes as many bytes as it reads, which a prediction
leaves out. The copy is copy_ into memory that is there: what allocating costs is left out, as in the prediction. On a CPU one thread
does all of it, as the prediction and Memscape's own measurement have it."""
import torch

from .sampling import Visit, one_version, refusing, threads_of

DTYPES = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16, "int64": torch.int64,
          "int32": torch.int32, "int8": torch.int8, "uint8": torch.uint8, "bool": torch.bool}
CHECKED_ELEMENTS = 1 << 16


class Copy:
    """Memory that lies as contiguous() would have it, and a launch of the copy."""

    def __init__(self, source):
        self.source = source
        self.target = torch.empty(source.shape, dtype=source.dtype, device=source.device)

    def __call__(self):
        self.target.copy_(self.source)

    def is_right(self):
        return torch.equal(self.source, self.target)


class Read:
    """A launch of one pass over a tensor, its last dimension fastest."""

    def __init__(self, source):
        self.source = source
        self.operator = torch.logical_not if source.dtype == torch.bool else torch.neg
        self.result = torch.empty(source.shape, dtype=source.dtype, device=source.device)

    def __call__(self):
        self.operator(self.source, out=self.result)


def filled(elements, dtype, device):
    """A storage of numbers that differ and that the type holds."""
    generator = torch.Generator(device=device).manual_seed(1)
    whole = torch.randint(0, 2 if dtype == torch.bool else 127, (elements,), generator=generator, device=device, dtype=torch.int16)
    return whole.to(dtype)


def base_of(words, dtype, device):
    size, stride = words["base"]["size"], words["base"]["stride"]
    return filled(words["base"]["storage"], dtype, device).as_strided(size, stride)


def made_view(words, x):
    """By the line of PyTorch that the program shows for these operations. Errors: run.skipped, check.failed."""
    with refusing(f"views: {words['code']}", lambda: "leave that operation away, or choose a newer torch", "views"):
        return eval(words["code"], {"__builtins__": {}, "torch": torch, "x": x})  # made by core/access/views/view_code.cpp


def wrong_numbers(view, words):
    """How many of the sizes, strides and offset are not those of the rules."""
    found = [*view.shape, *view.stride(), view.storage_offset()]
    wanted = [*words["size"], *words["stride"], words["offset"]]
    return abs(len(found) - len(wanted)) + sum(one != other for one, other in zip(found, wanted))


def wrong_elements(copy, words, storage):
    """Of up to CHECKED_ELEMENTS of the copy, spread over it: those that are not what lies where the strides say."""
    elements = copy.numel()
    places = torch.arange(0, elements, max(1, elements // CHECKED_ELEMENTS) | 1, device=copy.device)
    address, rest = torch.full_like(places, words["offset"]), places.clone()
    for size, stride in zip(reversed(words["size"]), reversed(words["stride"])):
        address += rest % size * stride
        rest = torch.div(rest, size, rounding_mode="floor")
    return (copy.flatten()[places] != storage[address]).sum().item()


def storage_of(view):
    """All elements of its storage, also where the view is of a later copy."""
    if hasattr(view, "untyped_storage"):
        return torch.empty(0, dtype=view.dtype, device=view.device).set_(view.untyped_storage())
    return torch.empty(0, dtype=view.dtype, device=view.device).set_(view.storage())


def walked(tensor, order):
    return tensor.permute(*reversed(range(tensor.dim()))) if order == "first-fastest" else tensor


def tensor_of(visit, parameters):
    """The view, and the checks that it is the one that was asked for."""
    words, dtype = parameters["tensor"], DTYPES[parameters["dtype"]]
    item = torch.empty(0, dtype=dtype).element_size()
    visit.check_room((words["base"]["storage"] + 3 * torch.Size(words["size"]).numel()) * item,
                     "the tensor, its copy and the results of reading them")
    view = made_view(words, base_of(words, dtype, visit.device))
    name = f"{words['code']} of {words['base']['size']} {parameters['order']} {parameters['dtype']}"
    checks = [visit.check(f"{name}: sizes, strides, offset", lambda: (wrong_numbers(view, words), 0))]
    if words["copies"]:
        checks.append(visit.check(f"{name}: copy", lambda: (wrong_elements(view.contiguous(), words, storage_of(view)), 0)))
    return view, checks


def measure(request):
    """request.parameters: those of `layout`, `visit`, and `tensor`: {"base": {"size", "stride", "storage"}, "code", "size", "stride",
    "offset", "copies"}, in elements. Answers samples view_total, contiguous_total, contiguous_time and copy_time."""
    parameters = request.parameters
    one_version(parameters, "copies")
    visit, reads, order = Visit(request), int(parameters["reads"]), parameters["walk"]
    with threads_of(visit.device, 1), refusing(f"dtype={parameters['dtype']}", lambda: "choose dtype=float32", "dtype"):
        view, checks = tensor_of(visit, parameters)
        works, dense = {}, view
        if parameters["tensor"]["copies"]:
            works["copy"] = Copy(view)
            works["copy"]()
            dense = works["copy"].target
        works["view"], works["dense"] = Read(walked(view, order)), Read(walked(dense, order))
        taken, _ = visit.samples(works, before=1)
        threads = torch.get_num_threads()
    copies = taken.get("copy", [0.0] * len(taken["dense"]))
    samples = {"view_total": [reads * seconds for seconds in taken["view"]], "contiguous_time": taken["dense"],
               "contiguous_total": [copy + reads * read for copy, read in zip(copies, taken["dense"])]}
    if "copy" in taken:
        samples["copy_time"] = taken["copy"]
    method = {"code": parameters["tensor"]["code"], "threads": threads, "kernels": checks,
              "reads": f"{works['view'].operator.__name__} into a dense result: it writes as many bytes as it reads",
              "copy": "copy_ into memory that is there", "caches": "steady state: each sample after a pass of its own kind"}
    return visit.answer(samples, method=method)

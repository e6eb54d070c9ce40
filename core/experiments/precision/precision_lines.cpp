// SPDX-License-Identifier: Apache-2.0
// One product in a format, or the small training of `precision` with its loss scaling, in PyTorch.
#include "core/experiments/common/framework_lines.h"

#include "core/experiments/common/python_lines.h"
#include "core/experiments/precision/precision.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// torch's name of a format that a Linear can be trained and multiplied in; empty where it has none.
std::string_view torchType(Format format)
{
    switch (format) {
    case Format::Fp64: return "torch.float64";
    case Format::Fp32:
    case Format::Tf32: return "torch.float32";
    case Format::Fp16: return "torch.float16";
    case Format::Bf16: return "torch.bfloat16";
    default: break;
    }
    return {};
}

void writeProduct(PythonLines& lines, const PrecisionCase& asked, std::string_view type, std::string_view device)
{
    lines.add(fmt::format("m, n, k = {}, {}, {}", asked.shape.m, asked.shape.n, asked.shape.k));
    if (!type.empty()) {
        lines.add(fmt::format("a = torch.randn(m, k, device={}, dtype={})", device, type));
        lines.add(fmt::format("b = torch.randn(k, n, device={}, dtype={})", device, type));
        lines.add("c = a @ b");
    } else if (asked.format == Format::Int8) {
        lines.comment("torch._int_mm is PyTorch's own and not documented: whole numbers in, int32 out.");
        lines.add(fmt::format("a = torch.randint(-128, 128, (m, k), device={}, dtype=torch.int8)", device));
        lines.add(fmt::format("b = torch.randint(-128, 128, (k, n), device={}, dtype=torch.int8)", device));
        lines.add("c = torch._int_mm(a, b)");
    } else {
        const char* eight = asked.format == Format::Fp8E5M2 ? "torch.float8_e5m2" : "torch.float8_e4m3fn";
        lines.comment("PyTorch stores FP8 and does not multiply it with @: torchao.float8 or Transformer Engine do, "
                      "with scales.");
        lines.add(fmt::format("a = torch.randn(m, k, device={}).to({})", device, eight));
        lines.add(fmt::format("b = torch.randn(k, n, device={}).to({})", device, eight));
    }
}

void writeTraining(PythonLines& lines, const PrecisionCase& asked, std::string_view type, std::string_view device)
{
    const bool isHalf = asked.format == Format::Fp16 || asked.format == Format::Bf16;
    const bool isScaled = asked.format == Format::Fp16;
    if (type.empty())
        lines.comment(
            "torch.autocast supports float16 and bfloat16: in this format there is no training in PyTorch alone.");
    lines.add(fmt::format(
        "model = torch.nn.Sequential(torch.nn.Linear({0}, {1}), torch.nn.ReLU(), torch.nn.Linear({1}, {1}), "
        "torch.nn.ReLU(), torch.nn.Linear({1}, 16)).to({2})",
        asked.shape.k, asked.shape.n, device));
    if (asked.format == Format::Fp64)
        lines.add("model = model.double()");
    lines.add("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # the rate is yours");
    if (isScaled)
        lines.add(fmt::format("scaler = torch.amp.GradScaler({}, init_scale={}, growth_interval={})", device,
                              numberText(asked.lossScale), asked.growthInterval));
    lines.blank();
    lines.blank();
    lines.add(fmt::format("def step(inputs, targets):  # batches of {}", asked.shape.m));
    std::string start = "    ";
    if (isHalf) {
        lines.add(fmt::format("    with torch.autocast({}, dtype={}):", device, type));
        start += "    ";
    }
    lines.add(start + "loss = torch.nn.functional.cross_entropy(model(inputs), targets)");
    lines.add(isScaled ? "    scaler.scale(loss).backward()" : "    loss.backward()");
    lines.add(isScaled ? "    scaler.step(optimizer)" : "    optimizer.step()");
    if (isScaled)
        lines.add("    scaler.update()");
    lines.add("    optimizer.zero_grad()");
}

} // namespace

std::vector<Snippet> precisionSnippets(const Device& device, const Parameters& parameters)
{
    const PrecisionCase asked = precisionCase(parameters);
    const std::string_view type = torchType(asked.format), where = device.isGpu() ? "\"cuda\"" : "\"cpu\"";
    PythonLines lines;
    lines.preamble(fmt::format("# As chosen in Memscape: {}.", parameters.choice("format")));
    lines.import("import torch");
    if (asked.format == Format::Tf32)
        lines.add("torch.set_float32_matmul_precision(\"high\")  # TF32 where there are tensor cores");
    if (asked.format == Format::Fp32)
        lines.add("torch.set_float32_matmul_precision(\"highest\")");
    if (asked.operation == PrecisionOperation::Train)
        writeTraining(lines, asked, type, where);
    else
        writeProduct(lines, asked, type, where);
    return {{"pytorch", "PyTorch lines", lines.text()}};
}

} // namespace memscape

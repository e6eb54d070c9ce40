// SPDX-License-Identifier: Apache-2.0
// The lines of the optimizer: how its library calls it, where its state lives, and what hooks or a scaler it needs.
#include "core/experiments/training-memory/training_lines.h"

#include "core/experiments/common/idle_parameters.h"
#include "core/experiments/training-memory/adapter_lines.h"

#include <fmt/format.h>

namespace memscape {

struct OptimizerName
{
    std::string_view call, import, arguments;
    bool hasForeach = false, hasFused = false;
};

namespace {

OptimizerName optimizerName(const std::string& kind)
{
    if (kind == "adam")
        return {"torch.optim.Adam", {}, {}, true, true};
    if (kind == "sgd")
        return {"torch.optim.SGD", {}, {}, true, true};
    if (kind == "momentum")
        return {"torch.optim.SGD", {}, ", momentum=0.9", true, true};
    if (kind == "adam-8bit")
        return {"bitsandbytes.optim.Adam8bit", "import bitsandbytes", {}};
    if (kind == "paged-adam-8bit")
        return {"bitsandbytes.optim.PagedAdam8bit", "import bitsandbytes", {}};
    if (kind == "paged-adamw")
        return {"bitsandbytes.optim.PagedAdamW", "import bitsandbytes", {}};
    if (kind == "adam-4bit")
        return {"torchao.optim.Adam4bit", "import torchao", {}};
    if (kind == "adam-fp8")
        return {"torchao.optim.AdamFp8", "import torchao", {}};
    if (kind == "adafactor")
        return {"torch.optim.Adafactor", {}, {}, true, false};
    if (kind == "galore-8bit")
        return {"galore_torch.GaLoreAdamW8bit", "import galore_torch", {}};
    if (kind == "galore")
        return {"galore_torch.GaLoreAdamW", "import galore_torch", {}};
    if (kind == "apollo")
        return {"apollo_torch.APOLLOAdamW", "import apollo_torch", {}};
    if (kind == "lomo")
        return {"lomo_optim.Lomo", "import lomo_optim", {}};
    if (kind == "adalomo")
        return {"lomo_optim.AdaLomo", "import lomo_optim", {}};
    if (kind == "lion")
        return {"bitsandbytes.optim.Lion", "import bitsandbytes", {}};
    return {"torch.optim.AdamW", {}, {}, true, true};
}

} // namespace

std::string TrainingLines::styleArguments(const OptimizerName& name) const
{
    const std::string& style = m_parameters.choice("optimizer_implementation");
    if (style == "fused")
        return name.hasFused ? ", fused=True" : "";
    return name.hasForeach ? fmt::format(", foreach={}", pythonFlag(style != "loop")) : "";
}

void TrainingLines::writeOptimizer()
{
    if (is("optimizer", "none"))
        return;
    const OptimizerName name = optimizerName(m_parameters.choice("optimizer"));
    if (!name.import.empty())
        m_lines.import(std::string(name.import));
    const std::string& style = m_parameters.choice("optimizer_implementation");
    const bool isWrittenOut =
        style == "written-out" || (style == "auto" && means("operators") && is("operators", "written-out"));
    if (means("optimizer_implementation") && isWrittenOut)
        m_lines.comment(
            "Predicted is an update that is written out, every expression a new tensor: torch.optim has none.");
    m_lines.add("learning_rate = 1e-3  # yours: memory does not depend on it");
    const std::string arguments = fmt::format("lr=learning_rate{}", name.arguments);
    if (m_parameters.flag("optimizer_in_backward") && !isLomo())
        writeHooks(fmt::format("{}([parameter], {}{})", name.call, arguments, styleArguments(name)));
    else if (m_offload == "optimizer" || m_offload == "gradients")
        writeOffloaded(name, arguments);
    else if (m_zero == 1)
        writeSharded(name, arguments);
    else if (is("optimizer", "muon"))
        writeMuon();
    else if (isLomo())
        m_lines.add(fmt::format("optimizer = {}(model, {})", name.call, arguments));
    else if (isGalore() || is("optimizer", "apollo"))
        writeProjected(name, arguments);
    else
        m_lines.add(
            fmt::format("optimizer = {}(model.parameters(), {}{})", name.call, arguments, styleArguments(name)));
    writeScaler();
    m_lines.blank();
}

void TrainingLines::writeProjected(const OptimizerName& name, const std::string& arguments)
{
    writeProjection();
    m_lines.add(fmt::format("optimizer = {}(groups(model.parameters()), {})", name.call, arguments));
}

void TrainingLines::writeProjection()
{
    m_lines.comment("Hidden matrices are projected; embeddings, head and vectors take AdamW.");
    m_lines.add("hidden = {p for n, p in model.named_parameters()");
    m_lines.add("          if p.ndim == 2 and \"embed\" not in n and \"head\" not in n}");
    m_lines.blank();
    m_lines.blank();
    m_lines.add("def groups(parameters):");
    m_lines.add("    trained = [p for p in parameters if p.requires_grad]");
    m_lines.add(
        fmt::format("    low = {{\"rank\": {}, \"update_proj_gap\": 200, \"scale\": {}, \"proj_type\": \"std\"{}}}",
                    integer("optimizer_rank"), isGalore() ? "0.25" : "1.0",
                    isGalore() ? "" : ", \"proj\": \"random\", \"scale_type\": \"channel\""));
    m_lines.add("    both = [{\"params\": [p for p in trained if p in hidden], **low},");
    m_lines.add("            {\"params\": [p for p in trained if p not in hidden]}]");
    m_lines.add("    return [group for group in both if group[\"params\"]]");
    m_lines.blank();
    m_lines.blank();
}

void TrainingLines::writeScaler()
{
    if (m_precision == "fp16" || m_precision == "fp16-mixed" || m_precision == "fp16-under-autocast")
        m_lines.comment("Nothing scales the loss: GradScaler refuses fp16 gradients. DeepSpeed's fp16 scales them.");
    if (!isScaled() || isLomo()) // it scales the loss itself
        return;
    if (m_zero >= 2 && !isByFsdp2()) {
        m_lines.import("from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler");
        m_lines.add("scaler = ShardedGradScaler()");
    } else {
        m_lines.add(fmt::format("scaler = torch.amp.GradScaler({})", m_device));
    }
}

void TrainingLines::writeOffloaded(const OptimizerName& name, const std::string& arguments)
{
    m_lines.import("from torchao.optim import CPUOffloadOptimizer");
    m_lines.add(fmt::format("optimizer = CPUOffloadOptimizer(model.parameters(), {}, offload_gradients={}, {})",
                            name.call, pythonFlag(m_offload == "gradients"), arguments));
    if (m_offload == "gradients" && (integer("accumulation") > 1 || m_parameters.flag("clipping") || isScaled()))
        m_lines.comment("It takes each gradient away while backward runs: accumulation, clipping and loss scaling need "
                        "DeepSpeed's offload instead.");
}

void TrainingLines::writeSharded(const OptimizerName& name, const std::string& arguments)
{
    m_lines.import("from torch.distributed.optim import ZeroRedundancyOptimizer");
    m_lines.add(fmt::format("optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class={}, {})",
                            name.call, arguments));
}

void TrainingLines::writeHooks(std::string optimizer)
{
    if (is("optimizer", "muon")) {
        writeIsHidden();
        optimizer = "(torch.optim.Muon if is_hidden(name, parameter) else torch.optim.AdamW)([parameter], "
                    "lr=learning_rate)";
    }
    m_lines.add(fmt::format("optimizers = {{parameter: {}", optimizer));
    m_lines.add("              for name, parameter in model.named_parameters() if parameter.requires_grad}");
    m_lines.blank();
    m_lines.blank();
    m_lines.add("def step(parameter):  # while backward runs");
    m_lines.add("    optimizers[parameter].step()");
    m_lines.add("    optimizers[parameter].zero_grad()");
    m_lines.blank();
    m_lines.blank();
    m_lines.add("for parameter in optimizers:");
    m_lines.add("    parameter.register_post_accumulate_grad_hook(step)");
}

void TrainingLines::writeIsHidden()
{
    m_lines.comment("Muon for hidden matrices; embeddings, head and vectors take AdamW.");
    m_lines.add("def is_hidden(name, weight):");
    m_lines.add("    return weight.ndim == 2 and \"embed\" not in name and \"head\" not in name");
    m_lines.blank();
    m_lines.blank();
}

void TrainingLines::writeMuon()
{
    writeIsHidden();
    m_lines.add("named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]");
    m_lines.add("optimizers = [torch.optim.Muon([p for n, p in named if is_hidden(n, p)], lr=learning_rate),");
    m_lines.add("              torch.optim.AdamW([p for n, p in named if not is_hidden(n, p)], lr=learning_rate)]");
}

} // namespace memscape

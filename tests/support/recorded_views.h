// SPDX-License-Identifier: Apache-2.0
// Views as the walks that the GPU's kernels take: of operations in PyTorch's words, and all that PyTorch was recorded
// with (tests/data/layout).
#pragma once

#include "core/access/views/tensor_walk.h"
#include "core/access/views/view_step.h"
#include "kernels/cuda/layout/layout_plan.h"

#include <QString>

#include <fstream>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

namespace memscape {

inline cuda::ViewNest nestOf(const TensorView& view)
{
    const TensorWalk walk = walkOf(view, WalkOrder::LastFastest, 4);
    cuda::ViewNest nest;
    nest.rank = int(walk.loops.size());
    nest.offset = std::uint64_t(walk.offset);
    nest.elements = std::uint64_t(walk.elements);
    for (std::size_t i = 0; i < walk.loops.size(); ++i) {
        nest.count[i] = std::uint64_t(walk.loops[i].count);
        nest.stride[i] = std::uint64_t(walk.loops[i].stride);
    }
    return nest;
}

inline cuda::ViewNest nestOf(const Sizes& shape, const char* views)
{
    const auto steps = applyAll(*freshTensor(shape), *parseViews(views));
    return nestOf(steps->empty() ? *freshTensor(shape) : steps->back().view);
}

inline QString described(const cuda::ViewNest& nest)
{
    QString text = QString::number(nest.offset);
    for (int i = 0; i < nest.rank; ++i)
        text += QStringLiteral(" + %1 × %2").arg(nest.count[i]).arg(nest.stride[i]);
    return text;
}

/// Each walk once, none empty.
inline std::vector<cuda::ViewNest> recordedNests()
{
    using Document = nlohmann::json;
    std::vector<TensorView> views;
    const auto document = [](const char* name) {
        std::ifstream file(std::string(TEST_DATA "/layout/") + name);
        return Document::parse(file, nullptr, false);
    };
    const auto add = [&views](const Document& size, const Document& stride, const Document& offset) {
        views.push_back({size.get<Sizes>(), stride.get<Sizes>(), offset.get<std::int64_t>(), 0});
    };
    const Document tensors = document("tensor_views.json"), chains = document("view_chains.json");
    for (const Document& tensor : tensors["cases"]) {
        for (const Document& step : tensor["steps"]) {
            if (step.contains("size"))
                add(step["size"], step["stride"], step["offset"]);
        }
    }
    for (const Document& chain : chains["chains"]) {
        for (const Document& step : chain["steps"]) {
            if (step.size() > 2)
                add(step[1], step[2], step[3]);
        }
    }
    std::set<QString> seen;
    std::vector<cuda::ViewNest> nests;
    for (const TensorView& view : views) {
        if (!view.isEmpty() && seen.insert(described(nestOf(view))).second)
            nests.push_back(nestOf(view));
    }
    return nests;
}

} // namespace memscape

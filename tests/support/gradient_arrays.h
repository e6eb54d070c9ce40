// SPDX-License-Identifier: Apache-2.0
// What a backward of attention reads and writes, for its kernels on the emulated machine, and what
// the gradients are in double.
#pragma once

#include "tests/support/attention_cases.h"
#include "tests/support/warp_emulator.h"

#include <algorithm>
#include <cmath>

namespace memscape::emulated {

using cuda::AttentionArrays;
using cuda::AttentionSizes;

/// Everything a backward reads and writes, with log-sum-exp and output of the exact forward.
template <typename Element> struct Gradients
{
    AttentionSizes s;
    Array<Element> q, k, v, outputGradient, output;
    ExactAttention exact;
    std::vector<float> logSumExp, delta;
    std::vector<Element> queryGradient, keyGradient, valueGradient;

    Gradients(AttentionSizes sizes, Drawn kind)
        : s(sizes)
    {
        s.scale = 1 / std::sqrt(float(s.headDim));
        const auto row = std::size_t(s.headDim);
        const std::size_t queries = std::size_t(s.batch * s.heads * s.queries) * row,
                          keys = std::size_t(s.batch * s.kvHeads * s.keys) * row;
        q = Array<Element>(drawn(kind, queries, row, 1));
        k = Array<Element>(drawn(kind, keys, row, 2));
        v = Array<Element>(drawn(Drawn::Normal, keys, row, 3));
        outputGradient = Array<Element>(drawn(Drawn::Normal, queries, row, 4));
        exact = exactAttention(s, q.exact, k.exact, v.exact, outputGradient.exact);
        output = Array<Element>(exact.output);
        logSumExp.assign(exact.logSumExp.begin(), exact.logSumExp.end());
        delta = poisoned<float>(logSumExp.size());
        queryGradient = poisoned<Element>(queries);
        keyGradient = valueGradient = poisoned<Element>(keys);
    }

    AttentionArrays arrays()
    {
        AttentionArrays a;
        a.query = q.elements.data();
        a.key = k.elements.data();
        a.value = v.elements.data();
        a.output = output.elements.data();
        a.logSumExp = logSumExp.data();
        a.outputGradient = outputGradient.elements.data();
        a.delta = delta.data();
        a.queryGradient = queryGradient.data();
        a.keyGradient = keyGradient.data();
        a.valueGradient = valueGradient.data();
        return a;
    }

    void readInputs(GlobalMemory& memory) const
    {
        memory.readable("Q", q.elements.data(), q.bytes());
        memory.readable("K", k.elements.data(), k.bytes());
        memory.readable("V", v.elements.data(), v.bytes());
        memory.readable("O", output.elements.data(), output.bytes());
        memory.readable("dO", outputGradient.elements.data(), outputGradient.bytes());
        memory.readable("LSE", logSumExp.data(), logSumExp.size() * 4);
    }
    template <typename T> static void writes(GlobalMemory& memory, const char* name, std::vector<T>& array)
    {
        memory.writable(name, array.data(), array.size() * sizeof(T));
    }
};

inline AttentionSizes sizesOf(int batch, int heads, int kvHeads, int queries, int keys, int headDim, bool causal)
{
    return {batch, heads, kvHeads, queries, keys, headDim, causal, 1};
}

} // namespace memscape::emulated

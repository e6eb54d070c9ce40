// SPDX-License-Identifier: Apache-2.0
// What a forward of attention reads and writes, for its kernels on the emulated machine, and how far what they give
// is from attention in double.
#pragma once

#include "tests/support/attention_cases.h"
#include "tests/support/warp_emulator.h"

#include <cmath>

namespace memscape::emulated {

/// `more`: keys beyond the queries.
inline AttentionSizes shapeOf(int batch, int heads, int kvHeads, int queries, bool causal, int more = 0)
{
    AttentionSizes s;
    s.batch = batch;
    s.heads = heads;
    s.kvHeads = kvHeads;
    s.queries = queries;
    s.keys = queries + more;
    s.causal = causal;
    return s;
}

struct ForwardRun
{
    LaunchCount count;
    double outputError = 0, logSumExpError = 0; ///< worstError()
    std::uint64_t untouched = 0, bytesRead = 0, bytesWritten = 0;
    std::vector<float> output, logSumExp;
};

/// Q, K and V of a case, and O and L that nothing has written.
template <typename Element> class ForwardArrays
{
public:
    ForwardArrays(AttentionSizes sizes, int headDim, Drawn kind)
        : s(sizes)
    {
        s.headDim = headDim;
        s.scale = 1 / std::sqrt(float(headDim));
        const auto row = std::size_t(headDim), rows = std::size_t(s.batch) * std::size_t(s.heads * s.queries),
                   keys = std::size_t(s.batch) * std::size_t(s.kvHeads * s.keys);
        m_query = Array<Element>(drawn(kind, rows * row, row, 1));
        m_key = Array<Element>(drawn(kind, keys * row, row, 2));
        m_value = Array<Element>(drawn(Drawn::Normal, keys * row, row, 3));
        m_output = poisoned<Element>(rows * row);
        m_logSumExp = poisoned<float>(rows);
        arrays.query = m_query.elements.data();
        arrays.key = m_key.elements.data();
        arrays.value = m_value.elements.data();
        arrays.output = m_output.data();
        arrays.logSumExp = m_logSumExp.data();
    }

    ForwardArrays(const ForwardArrays&) = delete;
    ForwardArrays& operator=(const ForwardArrays&) = delete;

    /// `kernel`: called with the machine of each thread.
    template <typename Kernel> ForwardRun run(const Launch& launch, const Kernel& kernel)
    {
        GlobalMemory memory;
        memory.readable("Q", m_query.elements.data(), m_query.bytes());
        memory.readable("K", m_key.elements.data(), m_key.bytes());
        memory.readable("V", m_value.elements.data(), m_value.bytes());
        memory.writable("O", m_output.data(), m_output.size() * sizeof(Element));
        memory.writable("LSE", m_logSumExp.data(), m_logSumExp.size() * sizeof(float));
        ForwardRun run;
        run.count = emulated::run(launch, memory, kernel);
        const ExactAttention exact = exactAttention(s, m_query.exact, m_key.exact, m_value.exact);
        run.outputError = worstError(m_output, exact.output);
        run.logSumExpError = worstError(m_logSumExp, exact.logSumExp);
        run.untouched = memory.elementsUntouched();
        run.bytesRead = memory.bytesRead;
        run.bytesWritten = memory.bytesWritten;
        for (const Element element : m_output)
            run.output.push_back(toFloat(element));
        run.logSumExp = m_logSumExp;
        return run;
    }

    AttentionSizes s;
    cuda::AttentionArrays arrays; ///< pointers to what is below

private:
    Array<Element> m_query, m_key, m_value;
    std::vector<Element> m_output;
    std::vector<float> m_logSumExp;
};

} // namespace memscape::emulated

// SPDX-License-Identifier: Apache-2.0
// Attention in double, the plain way, and inputs of every kind, for kernels that run on the host.
#pragma once

#include "tests/support/warp_emulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace memscape::emulated {

using cuda::AttentionSizes;

/// What a case draws: N(0, 1); large numbers, so that one key takes nearly all of a row; equal
/// numbers, so that all keys share alike; one row in eight of size 1000 times the others.
enum class Drawn { Normal, Large, Equal, Outliers };

inline std::vector<double> drawn(Drawn kind, std::size_t count, std::size_t rowLength, unsigned seed)
{
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double value = normal(generator);
        switch (kind) {
        case Drawn::Normal: values[i] = value; break;
        case Drawn::Large: values[i] = 30 * value; break;
        case Drawn::Equal: values[i] = 0.5; break;
        case Drawn::Outliers: values[i] = i / rowLength % 8 == 3 ? 1000 * value : value; break;
        }
    }
    return values;
}

/// The values as the format holds them, and what they are exactly.
template <typename Element> struct Array
{
    std::vector<Element> elements;
    std::vector<double> exact;

    Array() = default;
    explicit Array(const std::vector<double>& values)
    {
        for (const double value : values) {
            elements.push_back(fromFloat<Element>(float(value)));
            exact.push_back(double(toFloat(elements.back())));
        }
    }
    std::size_t bytes() const { return elements.size() * sizeof(Element); }
};

/// A result that nothing has written: NaN throughout.
template <typename Element> std::vector<Element> poisoned(std::size_t count)
{
    return std::vector<Element>(count, fromFloat<Element>(std::numeric_limits<float>::quiet_NaN()));
}

/// softmax(scale Q Kᵀ) V and everything on the way to its gradients, in double.
struct ExactAttention
{
    std::vector<double> output, logSumExp;
    std::vector<double> queryGradient, keyGradient, valueGradient, delta;
};

inline ExactAttention exactAttention(const AttentionSizes& s, const std::vector<double>& q,
                                     const std::vector<double>& k, const std::vector<double>& v,
                                     const std::vector<double>& outputGradient = {})
{
    const int n = s.queries, d = s.headDim, heads = s.batch * s.heads;
    ExactAttention exact;
    exact.output.assign(q.size(), 0);
    exact.logSumExp.assign(std::size_t(heads) * std::size_t(n), 0);
    exact.delta = exact.logSumExp;
    exact.queryGradient.assign(q.size(), 0);
    exact.keyGradient.assign(k.size(), 0);
    exact.valueGradient.assign(k.size(), 0);
    const auto row = [&](int head, int index) {
        return (std::size_t(head) * std::size_t(n) + std::size_t(index)) * std::size_t(d);
    };
    const auto keyRow = [&](int head, int index) {
        return (std::size_t(head) * std::size_t(s.keys) + std::size_t(index)) * std::size_t(d);
    };
    std::vector<double> p(static_cast<std::size_t>(s.keys));
    for (int head = 0; head < heads; ++head) {
        const int group = s.heads / s.kvHeads;
        const int kv = head / s.heads * s.kvHeads + head % s.heads / group;
        for (int i = 0; i < n; ++i) {
            const int seen = s.causal ? i + 1 + s.keys - n : s.keys;
            double most = -std::numeric_limits<double>::infinity(), sum = 0;
            for (int j = 0; j < seen; ++j) {
                double score = 0;
                for (int c = 0; c < d; ++c)
                    score += q[row(head, i) + std::size_t(c)] * k[keyRow(kv, j) + std::size_t(c)];
                p[std::size_t(j)] = score * double(s.scale);
                most = std::max(most, p[std::size_t(j)]);
            }
            for (int j = 0; j < seen; ++j)
                sum += std::exp(p[std::size_t(j)] - most);
            for (int j = 0; j < seen; ++j)
                p[std::size_t(j)] = std::exp(p[std::size_t(j)] - most) / sum;
            const std::size_t at = std::size_t(head) * std::size_t(n) + std::size_t(i);
            exact.logSumExp[at] = most + std::log(sum);
            for (int j = 0; j < seen; ++j) {
                for (int c = 0; c < d; ++c)
                    exact.output[row(head, i) + std::size_t(c)] +=
                        p[std::size_t(j)] * v[keyRow(kv, j) + std::size_t(c)];
            }
            if (outputGradient.empty())
                continue;
            for (int c = 0; c < d; ++c)
                exact.delta[at] +=
                    exact.output[row(head, i) + std::size_t(c)] * outputGradient[row(head, i) + std::size_t(c)];
            for (int j = 0; j < seen; ++j) {
                double dp = 0;
                for (int c = 0; c < d; ++c)
                    dp += outputGradient[row(head, i) + std::size_t(c)] * v[keyRow(kv, j) + std::size_t(c)];
                const double ds = p[std::size_t(j)] * (dp - exact.delta[at]) * double(s.scale);
                for (int c = 0; c < d; ++c) {
                    const std::size_t x = row(head, i) + std::size_t(c), y = keyRow(kv, j) + std::size_t(c);
                    exact.queryGradient[x] += ds * k[y];
                    exact.keyGradient[y] += ds * q[x];
                    exact.valueGradient[y] += p[std::size_t(j)] * outputGradient[x];
                }
            }
        }
    }
    return exact;
}

/// Largest |found − exact| / (scale of the exact values + |exact|); NaN counts as infinite.
template <typename Element> double worstError(const std::vector<Element>& found, const std::vector<double>& exact)
{
    double size = 0, worst = 0;
    for (const double value : exact)
        size = std::max(size, std::abs(value));
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const double error = std::abs(double(toFloat(found[i])) - exact[i]);
        if (!(error <= std::numeric_limits<double>::max()))
            return std::numeric_limits<double>::infinity();
        worst = std::max(worst, size > 0 ? error / size : error);
    }
    return worst;
}

} // namespace memscape::emulated

// SPDX-License-Identifier: Apache-2.0
// The closed formulas that papers and courses use, to show beside the simulated step. Each says
// what it counts; the simulator counts the rest too (logits, gradients of activations,
// temporaries).
//
// Symbols: s sequence, b micro-batch, h hidden, a heads, L layers, v vocabulary, t tensor-parallel
// degree, N data-parallel degree, Ψ parameters.
#pragma once

#include <cstdint>

namespace memscape::textbook {

/// A decoder-only transformer with a 4 h MLP, and its batch.
struct Transformer
{
    double layers = 0;
    double hidden = 0;
    double heads = 0;
    double sequence = 0;
    double vocabulary = 0;
    double batch = 1; ///< sequences of one micro-batch (or of the step, for FLOPs)
    double tensorParallel = 1;
};

/// Bytes of weights, gradients and optimizer state on one device in mixed-precision training with
/// Adam, K = 12 (fp32 master, two moments): stage 0: 16 Ψ; 1: 4 Ψ + 12 Ψ/N; 2: 2 Ψ + 14 Ψ/N; 3: 16
/// Ψ/N. Rajbhandari et al. 2020 (arXiv:1910.02054), Table 1.
double zeroBytes(double parameters, double dataParallel, int stage);

/// What a layer keeps for its backward pass under 16-bit activations with dropout.
enum class Kept {
    All,               ///< s b h (10 + 24/t + 5 a s / (h t)); t = 1: s b h (34 + 5 a s / h)
    AllSequence,       ///< with sequence parallelism: s b h / t (34 + 5 a s / h)
    Selective,         ///< attention recomputed: s b h (10 + 24/t)
    SelectiveSequence, ///< s b h 34 / t
    Full               ///< only the layer's input: 2 s b h
};
/// Bytes of one layer. Korthikanti et al. 2022 (arXiv:2205.05198), Table 2. Counts 2 B per element,
/// 1 B per dropout mask; leaves out norms' statistics and biases.
double layerBytes(const Transformer& model, Kept kept);
/// 5 a s / h: what attention's quadratic part adds to 34.
double attentionTerm(const Transformer& model);

/// Model FLOPs of a step: 72 b L s h² (1 + s / 6 h + v / 12 h L), and with attention recomputed
/// 72 b L s h² (1 + s / 3 h + v / 12 h L) (same paper, appendix A). batch is that of the step.
double stepFlops(const Transformer& model, bool recomputesAttention = false);

/// 12 L h² (1 + 13 / 12 h + (v + s) / 12 L h).
double parameters(const Transformer& model);

/// Bytes of the KV cache per token: 2 L × KV heads × head dimension × bytes.
double cachePerToken(double layers, double keyValueHeads, double headDimension, double elementBytes);

} // namespace memscape::textbook

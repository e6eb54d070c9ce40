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

/// Elements that data parallelism moves per device and step, in Ψ: 2 up to stage 2, 3 for stage 3
/// (same paper, section 7; without the factor (N - 1) / N of a ring).
double zeroVolume(int stage);

/// Activations of a transformer in elements, 12 h b s L (same paper, footnote 3).
double zeroActivationElements(const Transformer& model);

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
/// Bytes outside of the layers on the first pipeline stage of `stages`: the embedding's dropout,
/// and with one stage the last norm, the output layer's input and the logits (same paper,
/// section 4.3).
double outerBytes(const Transformer& model, double stages);

/// Model FLOPs of a step: 72 b L s h² (1 + s / 6 h + v / 12 h L), and with attention recomputed
/// 72 b L s h² (1 + s / 3 h + v / 12 h L) (same paper, appendix A). batch is that of the step.
double stepFlops(const Transformer& model, bool recomputesAttention = false);

/// 12 L h² (1 + 13 / 12 h + (v + s) / 12 L h).
double parameters(const Transformer& model);

/// Bytes of the KV cache per token: 2 L × KV heads × head dimension × bytes.
double cachePerToken(double layers, double keyValueHeads, double headDimension, double elementBytes);
/// With latent attention (DeepSeek-V2): (rank of the latent + rotary dimension) L × bytes.
double latentCachePerToken(double layers, double latentRank, double rotaryDimension, double elementBytes);

/// Bits per element of NF4: 4 + 32/64, with double quantization 4 + 8/64 + 32/(64 × 256). Dettmers
/// et al. 2023 (arXiv:2305.14314).
double normalFloatBits(bool isDoublyQuantized);

} // namespace memscape::textbook

// SPDX-License-Identifier: Apache-2.0
// Which of a pass' operators run in one kernel, beyond what a compiler joins.
//
//     experts    those that a rank holds of many run together: their tiles share waves. Megatron runs all that it holds
//                (expert parallelism); engines run those that some token is sent to, in one grouped product (vLLM's
//                layers/fused_moe, TensorRT-LLM's MoE kernels, llama.cpp's mul_mat_id)
//     a tile     of llama.cpp's grouped product has as many rows as all tokens, up to 128, though an expert has
//                fewer: it is chosen by ncols_max (mmq.cuh, mul_mat_q_case; ggml-org/llama.cpp, pull request 26977)
//     products   that read the same rows are one: queries, keys and values, gate and up (TensorRT's demo/BERT,
//                builder.py: WQKV)
//     activation of a product's result within its kernel (NVIDIA, TensorRT Best Practices, "Layer fusion": matrix
//                multiplication and GELU), bias included
//     weights    in 8 bits and fewer are read as they are stored: by llama.cpp's MMQ and MMVQ, Marlin, AWQ's GEMM
//     a few rows of a quantized matrix go through llama.cpp's MMVQ like one (mmvq.cu, vecdotq.cuh): a thread loads 16
//                weights of Q4_0 (4 loads of 2 bytes, 2 joined), unpacks them (3 for each of two words) and has their
//                scale (2), for all rows; then for each row 4 loads, 4 dp4a, the scales of its block (3) and their
//                product with the sum (4). Counted by hand, other formats like Q4_0; what waits for loads and what
//                multiplies follow each other
//
// Left out: instructions that make weights wider on the way elsewhere; experts that get more rows than others.
#pragma once

#include "core/network/graph.h"
#include "core/timing/operator_cost.h"
#include "core/training/plan.h"

#include <vector>

namespace memscape {

class JoinedOperators
{
public:
    JoinedOperators(const Graph& graph, const Plan& plan);
    /// Experts that run together with the one that an operator belongs to; 1 elsewhere.
    double expertsAtOnce(std::size_t op) const;
    /// What an operator costs where it is joined with others.
    OperatorCost joined(OperatorCost cost, std::size_t op) const;
    /// Of what one costs, what is asked for: of an expert that no token is sent to, nothing.
    double share(std::size_t op) const;

private:
    bool isWithinProduct(std::size_t op) const;
    double expertsOfLayer(std::size_t op) const;

    const Graph& m_graph;
    ServedKernels m_served;
    std::vector<double> m_experts;      ///< by module, of the layer; 1 elsewhere
    std::vector<double> m_expertMade;   ///< by storage, the same of what an expert makes
    std::vector<std::uint32_t> m_maker; ///< by storage: the product that has made it, + 1
    std::vector<double> m_readers;      ///< by storage: products with weights that read it
    std::size_t m_head = 0;             ///< the last product
};

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// The operators of a placed program on a core of the host: products, gelu and passes over arrays. A thread has its own.
#pragma once

#include "kernels/host/common/product.h"
#include "kernels/host/common/threads.h"
#include "kernels/programs/placement/placed_machine.h"

#include <functional>
#include <vector>

namespace memscape::host {

class HostOperators
{
public:
    /// `stopping` is asked between pieces of a product.
    HostOperators(ProductKernel product, std::function<bool()> stopping)
        : m_product(std::move(product))
        , m_stopping(std::move(stopping))
    { }

    /// The share of `thread` in the rows of the result; a row's numbers do not depend on it.
    void forward(const GraphNode& node, const float* a, const float* b, float* output, int thread = 0, int threads = 1);
    void backward(const GraphNode& node, const PlacedBackward& work);
    static void lossGradient(float* y, std::size_t count);

private:
    void multiply(ProductWork work);

    ProductKernel m_product;
    std::function<bool()> m_stopping;
    ProductScratch m_scratch;
    std::vector<float> m_row; ///< of sums that are not kept
};

} // namespace memscape::host

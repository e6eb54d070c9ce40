// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/checkpoint/mlp_device.h"

#include "core/base/number.h"
#include "kernels/host/checkpoint/gelu.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

constexpr double pieceFlops = 8e9;         // of a product between two looks at Stop
constexpr std::size_t columnGrain = 64;    // slabs begin at whole vectors and tiles
constexpr std::size_t fillBlock = 1 << 20; // elements between two looks at Stop

class HostMlpDevice final : public MlpDevice
{
public:
    HostMlpDevice(HostSession& session, const MlpShape& shape, ProductKernel product)
        : m_session(session)
        , m_batch(std::size_t(shape.batch))
        , m_width(std::size_t(shape.width))
        , m_length(std::size_t(shape.length))
        , m_arrayElements(std::size_t(mlpArrayBytes(shape)) / sizeof(float))
        , m_weightScale(mlpWeightScale(shape))
        , m_product(std::move(product))
        , m_scratch(std::size_t(session.team().size()))
        , m_partial(m_scratch.size())
        , m_sums(m_scratch.size())
    { }

    Result<void> open(std::int64_t arenaBytes);

    float* arena() override { return m_arena.as<float>(); }
    Result<void> input(float* x) override { return fill(x, m_batch * m_width, mlpInputSeed, 1); }
    Result<void> forward(int stage, const float* x, float* z, float* result) override;
    Result<void> preactivation(int stage, const float* x, float* z) override { return forward(stage, x, z, nullptr); }
    Result<void> loss(const float* x, float* gradient) override;
    Result<void> backward(int stage, const float* x, const float* z, float* gradient, float* result) override;
    Result<void> poison(float* array) override
    {
        std::memset(array, 0xff, m_arrayElements * sizeof(float));
        return {};
    }
    Result<void> mark() override
    {
        m_marks.push_back(m_session.clock().now());
        return {};
    }
    Result<std::vector<double>> takeMarks() override;
    Result<void> checkStopped() override { return m_session.checkStopped(); }

    Result<std::uint64_t> digest(const float* array) override { return digestOf(array, m_batch * m_width); }
    Result<std::uint64_t> gradientDigest(int stage) override { return digestOf(gradients(stage), blockElements()); }
    Result<double> loss() override { return m_loss; }
    Result<std::vector<float>> read(const float* array) override
    {
        return std::vector<float>(array, array + m_batch * m_width);
    }
    Result<std::vector<float>> readParameters(int stage) override { return blockAt(parameters(stage)); }
    Result<std::vector<float>> readGradients(int stage) override { return blockAt(gradients(stage)); }
    Json method() const override;

private:
    /// W_i and behind it b_i, or their gradients.
    std::size_t blockElements() const { return m_width * m_width + m_width; }
    float* parameters(int stage) const { return m_parameters.as<float>() + 2 * std::size_t(stage) * m_blockPitch; }
    float* gradients(int stage) const { return parameters(stage) + m_blockPitch; }
    std::vector<float> blockAt(const float* block) const { return {block, block + blockElements()}; }
    int threads() { return m_session.team().size(); }

    Result<void> fill(float* values, std::size_t count, std::uint64_t seed, float scale);
    Result<std::uint64_t> digestOf(const float* values, std::size_t count);
    /// body(thread, first column, last column) over pieces of every thread's slab.
    template <typename Body> Result<void> overColumns(std::size_t inner, std::size_t rows, const Body& body);

    HostSession& m_session;
    std::size_t m_batch, m_width, m_length, m_arrayElements;
    float m_weightScale;
    ProductKernel m_product;
    std::size_t m_blockPitch = 0; ///< elements
    Buffer m_parameters, m_arena;
    std::vector<ProductScratch> m_scratch; ///< per thread
    std::vector<double> m_partial;         ///< of the loss, per thread
    std::vector<std::uint64_t> m_sums;     ///< of a digest, per thread
    double m_loss = 0;
    std::vector<double> m_marks;
};

Result<void> HostMlpDevice::open(std::int64_t arenaBytes)
{
    m_blockPitch = std::size_t(pooledBytes(std::int64_t(blockElements() * sizeof(float)))) / sizeof(float);
    const std::size_t parameterBytes = 2 * m_length * m_blockPitch * sizeof(float);
    if (auto fits = m_session.checkFits(double(parameterBytes) + double(arenaBytes)); !fits) {
        Error error = std::move(fits).error();
        error.message = fmt::format("weights and their gradients take {}, the activations {}: {}",
                                    quantityText(double(parameterBytes), Unit::Byte),
                                    quantityText(double(arenaBytes), Unit::Byte), error.message);
        error.hint += ", or choose a narrower or shorter chain or a smaller batch";
        return fail(std::move(error));
    }
    MEMSCAPE_SET(m_parameters, allocate(parameterBytes, Pages::Huge, m_session.memory()));
    MEMSCAPE_SET(m_arena, allocate(std::size_t(arenaBytes), Pages::Huge, m_session.memory()));
    for (int i = 0; i < int(m_length); ++i) {
        MEMSCAPE_CHECK(fill(this->parameters(i), m_width * m_width, mlpWeightSeed(i), m_weightScale));
        MEMSCAPE_CHECK(fill(this->parameters(i) + m_width * m_width, m_width, mlpBiasSeed(i), mlpBiasScale));
    }
    return {};
}

Result<void> HostMlpDevice::fill(float* values, std::size_t count, std::uint64_t seed, float scale)
{
    m_session.team().run([&](int thread) {
        const Part part = partOf(count, thread, threads(), columnGrain);
        for (std::size_t at = part.begin; at < part.end && !m_session.team().stopping(); at += fillBlock)
            uniformRow(values + at, seed, at, std::min(fillBlock, part.end - at), scale);
    });
    return checkStopped();
}

template <typename Body> Result<void> HostMlpDevice::overColumns(std::size_t inner, std::size_t rows, const Body& body)
{
    const double perColumn = 2.0 * double(inner) * double(rows);
    const auto grains = std::max<std::size_t>(1, std::size_t(pieceFlops / (perColumn * columnGrain)));
    const std::size_t piece = grains * columnGrain;
    m_session.team().run([&](int thread) {
        const Part part = partOf(m_width, thread, threads(), columnGrain);
        for (std::size_t at = part.begin; at < part.end && !m_session.team().stopping(); at += piece)
            body(thread, Part{at, std::min(at + piece, part.end)});
    });
    return checkStopped();
}

Result<void> HostMlpDevice::forward(int stage, const float* x, float* z, float* result)
{
    const float* weights = parameters(stage);
    const float* bias = weights + m_width * m_width;
    float* const sums = z != nullptr ? z : result;
    return overColumns(m_width, m_batch, [&](int thread, Part columns) {
        for (std::size_t row = 0; row < m_batch; ++row)
            std::memcpy(sums + row * m_width + columns.begin, bias + columns.begin, columns.size() * sizeof(float));
        m_product.run({m_batch, columns.size(), m_width, x, m_width, false, weights + columns.begin, m_width, false,
                       sums + columns.begin, m_width, true},
                      m_scratch[std::size_t(thread)]);
        for (std::size_t row = 0; row < m_batch && result != nullptr; ++row)
            geluRow(sums + row * m_width + columns.begin, result + row * m_width + columns.begin, columns.size());
    });
}

Result<void> HostMlpDevice::loss(const float* x, float* gradient)
{
    const std::size_t count = m_batch * m_width;
    m_session.team().run([&](int thread) {
        const Part part = partOf(count, thread, threads(), columnGrain);
        m_partial[std::size_t(thread)] =
            lossRow(x + part.begin, gradient + part.begin, part.begin, part.size(), double(count));
    });
    m_loss = std::accumulate(m_partial.begin(), m_partial.end(), 0.0) / double(count);
    return checkStopped();
}

Result<void> HostMlpDevice::backward(int stage, const float* x, const float* z, float* gradient, float* result)
{
    const float* weights = parameters(stage);
    float* const weightGradient = gradients(stage);
    float* const biasGradient = weightGradient + m_width * m_width;
    // dz and its sums of a slab of columns, and with them the slab's part of dW.
    MEMSCAPE_CHECK(overColumns(m_batch, m_width, [&](int thread, Part columns) {
        std::fill_n(biasGradient + columns.begin, columns.size(), 0.0F);
        for (std::size_t row = 0; row < m_batch; ++row)
            geluSlopeRow(z + row * m_width + columns.begin, gradient + row * m_width + columns.begin,
                         biasGradient + columns.begin, columns.size());
        m_product.run({m_width, columns.size(), m_batch, x, m_width, true, gradient + columns.begin, m_width, false,
                       weightGradient + columns.begin, m_width, false},
                      m_scratch[std::size_t(thread)]);
    }));
    // y_i needs all of dz.
    return overColumns(m_width, m_batch, [&](int thread, Part columns) {
        m_product.run({m_batch, columns.size(), m_width, gradient, m_width, false, weights + columns.begin * m_width,
                       m_width, true, result + columns.begin, m_width, false},
                      m_scratch[std::size_t(thread)]);
    });
}

Result<std::uint64_t> HostMlpDevice::digestOf(const float* values, std::size_t count)
{
    m_session.team().run([&](int thread) {
        const Part part = partOf(count, thread, threads(), columnGrain);
        std::uint64_t sum = 0;
        for (std::size_t at = part.begin; at < part.end && !m_session.team().stopping(); at += fillBlock)
            sum += digestRow(values + at, at, std::min(fillBlock, part.end - at));
        m_sums[std::size_t(thread)] = sum;
    });
    MEMSCAPE_CHECK(checkStopped());
    return std::accumulate(m_sums.begin(), m_sums.end(), std::uint64_t(0));
}

Result<std::vector<double>> HostMlpDevice::takeMarks()
{
    std::vector<double> marks = std::move(m_marks);
    m_marks.clear();
    for (std::size_t i = marks.size(); i-- > 0;)
        marks[i] -= marks.front();
    return marks;
}

Json HostMlpDevice::method() const
{
    return {{"product", m_product.name},
            {"threads", m_scratch.size()},
            {"threading", "the pinned threads of the measurement, a slab of columns each"},
            {"elementwise", isaText(widestIsa())},
            {"pages", m_arena.hugeShare() > 0.9 ? "huge (2 MiB)" : "small (4 KiB)"}};
}

} // namespace

Result<std::unique_ptr<MlpDevice>> makeMlpDevice(HostSession& session, const MlpShape& shape, std::int64_t arenaBytes,
                                                 const ProductKernel& product)
{
    auto device = std::make_unique<HostMlpDevice>(session, shape, product);
    MEMSCAPE_CHECK(device->open(arenaBytes));
    return std::unique_ptr<MlpDevice>(std::move(device));
}

} // namespace memscape::host

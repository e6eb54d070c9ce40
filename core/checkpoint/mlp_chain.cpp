// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/mlp_chain.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::string_view prefix = "mlp:";

Result<void> checkShape(const MlpShape& shape)
{
    const auto inside = [](std::int64_t value, std::int64_t limit, std::string_view what) -> Result<void> {
        if (value < 1 || value > limit)
            return fail("chain.range", fmt::format("{} {} of the MLP chain is not possible", what, value),
                        fmt::format("give 1 to {}", limit), "chain");
        return {};
    };
    MEMSCAPE_CHECK(inside(shape.length, mlpLengthLimit, "depth"));
    MEMSCAPE_CHECK(inside(shape.width, mlpWidthLimit, "width"));
    return inside(shape.batch, mlpBatchLimit, "batch");
}

/// The whole text as a number; nothing when it is none or too large for 64 bits.
std::optional<std::int64_t> wholeNumber(std::string_view text)
{
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
        return std::nullopt;
    return value;
}

double elements(const MlpShape& shape)
{
    return double(shape.batch) * double(shape.width);
}
double weights(const MlpShape& shape)
{
    return double(shape.width) * double(shape.width);
}
double productFlops(const MlpShape& shape)
{
    return 2 * elements(shape) * double(shape.width);
}
/// Two arrays and the weights, each once.
double productBytes(const MlpShape& shape)
{
    return 4 * (2 * elements(shape) + weights(shape));
}

} // namespace

bool isMlpText(std::string_view text)
{
    return text.substr(0, prefix.size()) == prefix;
}

Result<MlpShape> parseMlpShape(std::string_view text, std::int64_t batch)
{
    const std::string_view sizes = isMlpText(text) ? text.substr(prefix.size()) : std::string_view();
    const std::size_t cross = sizes.find('x');
    const auto length = wholeNumber(sizes.substr(0, cross));
    const auto width = cross == std::string_view::npos ? std::nullopt : wholeNumber(sizes.substr(cross + 1));
    if (!length || !width)
        return fail("chain.syntax", fmt::format("\"{}\" is not an MLP chain", text),
                    "mlp:DEPTHxWIDTH, e.g. mlp:48x4096", "chain");
    const MlpShape shape{*length, *width, batch};
    MEMSCAPE_CHECK(checkShape(shape));
    return shape;
}

std::string mlpText(const MlpShape& shape)
{
    return fmt::format("{}{}x{}", prefix, shape.length, shape.width);
}

std::int64_t mlpArrayBytes(const MlpShape& shape)
{
    return pooledBytes(shape.batch * shape.width * std::int64_t(sizeof(float)));
}

Result<Chain> mlpChain(const MlpShape& shape)
{
    MEMSCAPE_CHECK(checkShape(shape));
    const std::int64_t array = mlpArrayBytes(shape);
    Stage stage;
    stage.options = {SaveOption{"all", 0, 0, 2 * array, 0, 0}, SaveOption{"result", 0, 0, array, 0, array}};
    Chain chain;
    chain.name = fmt::format("{}, batch {}", mlpText(shape), shape.batch);
    chain.values.assign(std::size_t(shape.length) + 1, array);
    chain.stages.assign(std::size_t(shape.length), stage);
    for (std::size_t i = 0; i < chain.stages.size(); ++i)
        chain.stages[i].name = fmt::format("linear {}", i);
    return chain;
}

MlpWork mlpForwardWork(const MlpShape& shape, bool isSaved)
{
    // The product writes z; bias and gelu read it and write x (and z with its bias, when it is
    // saved).
    return {productFlops(shape), productBytes(shape) + 4 * elements(shape) * (isSaved ? 3 : 2)};
}

MlpWork mlpBackwardWork(const MlpShape& shape, MlpSave save)
{
    // dz reads y and z and writes over y, db reads dz; one product writes dW, the other y_i.
    MlpWork work{2 * productFlops(shape), 2 * productBytes(shape) + 4 * elements(shape) * 4};
    if (save == MlpSave::Result) {
        work.flops += productFlops(shape);
        work.bytes += productBytes(shape) + 4 * elements(shape) * 2; // the bias is added in place
    }
    return work;
}

MlpWork mlpLossWork(const MlpShape& shape)
{
    return {0, 4 * elements(shape) * 2};
}

} // namespace memscape

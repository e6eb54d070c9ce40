// SPDX-License-Identifier: Apache-2.0
#include "core/timing/attention_memory.h"
#include "core/base/rounding.h"

#include "core/checkpoint/mlp_chain.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Elements of an array times their size, rounded up as the pool does.
bool setBytes(AttentionArray& array)
{
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(array.elements, array.elementBytes, &bytes)
        || __builtin_add_overflow(bytes, poolGranularity, &bytes))
        return false;
    array.bytes = pooledBytes(bytes - poolGranularity);
    return true;
}

tl::unexpected<Error> tooLarge(const AttentionShape& shape)
{
    return fail("attention.bytes",
                fmt::format("{} × {} × {} × {} scores are more bytes than 2^63", shape.batch, shape.heads,
                            shape.queries, shape.keys),
                "choose a shorter sequence or a smaller batch", "sequence");
}

std::vector<AttentionArray> standardArrays(const AttentionVersion& version, std::int64_t scores,
                                           std::int64_t elementBytes)
{
    std::vector<AttentionArray> arrays;
    if (!version.inPlace)
        arrays.push_back({"S", scores, elementBytes, 0, true, false, false});
    arrays.push_back({"P", scores, elementBytes, 0, true, true, true});
    arrays.push_back({"dP", scores, elementBytes, 0, false, false, true});
    if (!version.inPlace)
        arrays.push_back({"dS", scores, elementBytes, 0, false, false, true});
    return arrays;
}

std::vector<AttentionArray> flashArrays(const AttentionVersion& version, const AttentionShape& shape, DType dtype,
                                        int workers)
{
    constexpr std::int64_t floatBytes = 4;
    const std::int64_t rows = shape.queryRows();
    std::vector<AttentionArray> arrays{{"L", rows, floatBytes, 0, true, true, true},
                                       {"D", rows, floatBytes, 0, false, false, true}};
    const bool isFloat = dtype == DType::Float32;
    std::int64_t sums = 0;
    if (version.queryGradient == QueryGradient::Atomic)
        sums = isFloat ? 0 : 1;
    else if (version.queryGradient == QueryGradient::PerSplit) {
        const std::int64_t splits = attentionSplits(version, shape, workers);
        sums = isFloat && splits == 1 ? 0 : splits;
    }
    std::int64_t elements = 0;
    if (__builtin_mul_overflow(sums, rows * shape.headDim, &elements))
        elements = std::numeric_limits<std::int64_t>::max(); // setBytes() refuses it
    if (sums > 0)
        arrays.push_back({"dQ in floats", elements, floatBytes, 0, false, false, true});
    if (version.expandsKeyGradients && shape.kvHeads < shape.heads)
        arrays.push_back({"dK and dV of every query head", 2 * shape.batch * shape.heads * shape.keys * shape.headDim,
                          elementBytes(dtype), 0, false, false, true});
    return arrays;
}

} // namespace

std::int64_t attentionSplits(const AttentionVersion& version, const AttentionShape& shape, int workers)
{
    const std::int64_t heads = shape.batch * shape.kvHeads;
    const std::int64_t wanted = quotientUp<std::int64_t>(workers, heads);
    const std::int64_t tile = std::max<std::int64_t>(version.tile(shape.headDim, AttentionPass::Backward).keys, 1);
    return std::clamp<std::int64_t>(wanted, 1, (shape.keys + tile - 1) / tile);
}

Result<std::vector<AttentionArray>> attentionArrays(const AttentionVersion& version, const AttentionShape& shape,
                                                    DType dtype, int workers)
{
    std::int64_t scores = 0;
    if (__builtin_mul_overflow(shape.queryRows(), shape.keys, &scores))
        return tooLarge(shape);
    std::vector<AttentionArray> arrays = version.kind == AttentionKind::Standard
        ? standardArrays(version, scores, elementBytes(dtype))
        : flashArrays(version, shape, dtype, workers);
    if (version.workspace > 0)
        arrays.push_back({"the library's workspace", version.workspace, 1, 0, true, false, true});
    std::int64_t sum = 0;
    for (AttentionArray& array : arrays) {
        if (!setBytes(array) || __builtin_add_overflow(sum, array.bytes, &sum))
            return tooLarge(shape);
    }
    return arrays;
}

Result<AttentionMemory> attentionMemory(const AttentionVersion& version, const AttentionShape& shape, DType dtype,
                                        AttentionPass pass, int workers)
{
    MEMSCAPE_TRY(arrays, attentionArrays(version, shape, dtype, workers));
    AttentionMemory memory;
    for (const AttentionArray& array : arrays) {
        memory.forward += array.inForward ? array.bytes : 0;
        memory.saved += array.isSaved ? array.bytes : 0;
        memory.backward += array.inBackward ? array.bytes : 0;
    }
    const std::int64_t query = shape.queryRows() * shape.headDim * elementBytes(dtype);
    const std::int64_t key = shape.keyRows() * shape.headDim * elementBytes(dtype);
    const std::int64_t passes = pass == AttentionPass::Forward ? 1 : 2;
    memory.tensors = passes * (2 * pooledBytes(query) + 2 * pooledBytes(key));
    return memory;
}

} // namespace memscape

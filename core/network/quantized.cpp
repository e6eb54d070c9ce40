// SPDX-License-Identifier: Apache-2.0
#include "core/network/quantized.h"

namespace memscape {

namespace {

constexpr std::int64_t scaledBlock = 64, nestedBlock = 256;
constexpr std::int64_t codeTable = 16 * 4, nestedTable = 256 * 4, nestedOffset = 4;

std::int64_t blocksOf(std::int64_t elements, std::int64_t size)
{
    return elements / size + (elements % size != 0);
}

} // namespace

std::int64_t normalFloatBytes(std::int64_t elements, bool isDouble)
{
    const std::int64_t blocks = blocksOf(elements, scaledBlock);
    const std::int64_t scales =
        isDouble ? blocks + 4 * blocksOf(blocks, nestedBlock) + nestedOffset + nestedTable : 4 * blocks;
    return blocksOf(elements, 2) + scales + codeTable;
}

std::int64_t gptqBytes(std::int64_t rows, std::int64_t columns, std::int64_t group)
{
    const std::int64_t groups = rows * (group > 0 ? blocksOf(columns, group) : 1);
    return blocksOf(rows * columns, 2) + 2 * groups + blocksOf(groups, 2) + 4 * columns;
}

std::int64_t quantizedBytes(BaseForm form, std::int64_t rows, std::int64_t columns)
{
    switch (form) {
    case BaseForm::Int8: return rows * columns + 4 * rows;
    case BaseForm::Gptq: return gptqBytes(rows, columns);
    default: return normalFloatBytes(rows * columns, form == BaseForm::NormalFloat4Double);
    }
}

} // namespace memscape

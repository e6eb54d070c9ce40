// SPDX-License-Identifier: Apache-2.0
// Chains for checkpointing: files, and the short forms of the parameter `chain`.
#include "core/checkpoint/chain.h"

#include "core/checkpoint/mlp_chain.h"
#include "core/experiments/checkpoint/checkpoint_chain.h"
#include "tests/fuzz/target.h"

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text = fuzz::text(data, size);
    fuzz::errorIsClear(parseMlpShape(text, 1));
    fuzz::errorIsClear(parseUniformChain(text));
    if (const auto json = parseJson(text))
        fuzz::readsBack(
            *json, [](const Json& one) { return chainFromJson(JsonReader(one)); }, chainToJson);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Models as users name them: a Hugging Face config.json, and the recipes in one line.
#include "core/network/model_config.h"

#include "core/network/inventory.h"
#include "core/network/model_recipes.h"
#include "tests/fuzz/target.h"

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text = fuzz::text(data, size);
    const auto json = parseJson(text);
    const auto model = json ? modelFromConfig(JsonReader(*json), "config.json") : modelFromRecipe(text);
    fuzz::errorIsClear(model);
    if (!model)
        return 0;
    const auto list = inventory(*model);
    fuzz::errorIsClear(list);
    if (list)
        fuzz::promise(list->total >= 0 && list->active >= 0 && list->active <= list->total,
                      "parameters are counted without overflow");
    return 0;
}

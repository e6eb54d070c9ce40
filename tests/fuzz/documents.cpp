// SPDX-License-Identifier: Apache-2.0
// Records and studies: what Open, report and check read.
#include "core/experiment/document.h"
#include "tests/fuzz/target.h"

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto json = parseJson(fuzz::text(data, size));
    fuzz::errorIsClear(json);
    if (!json)
        return 0;
    fuzz::errorIsClear(documentFormat(*json));
    fuzz::readsBack(
        *json, [](const Json& one) { return recordFromJson(one); }, recordToJson);
    fuzz::readsBack(
        *json, [](const Json& one) { return studyFromJson(one); }, studyToJson);
    return 0;
}

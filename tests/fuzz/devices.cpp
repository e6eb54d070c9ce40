// SPDX-License-Identifier: Apache-2.0
// Device files: the catalogue's, calibrations, and those a user names; files of media.
#include "core/device/device.h"
#include "core/device/media.h"
#include "tests/fuzz/target.h"

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto json = parseJson(fuzz::text(data, size));
    if (json)
        static_cast<void>(mediaFromJson(*json, "media"));
    if (json)
        fuzz::readsBack(
            *json, [](const Json& one) { return deviceFromJson(one); }, deviceToJson);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// `detail` of a prediction of `bank-conflicts`, for a picture that plays the wavefronts:
//   tile       {"width","columns","padding","swizzle","rows","bytes"}: swizzle is the piece in bytes, 0 none
//   request    {"pattern","stride","operation","banks","word_bytes","degree","wavefronts","merged"}
//   lanes      [{"lane","element","row","column","address","word","bank","words","phase","wavefront"}]
//   phases     [{"first","lanes","degree","first_wavefront"}]
//   cures      [{"key","label","wavefronts","bytes","parameters": {…}}]: the same lanes with the tile as it
//              is without a cure, padded by one, swizzled; those that the sizes allow
//   not_here   what the device lacks, and what to choose instead; absent on a GPU
#include "core/experiments/bank-conflicts/bank_conflicts.h"

#include <fmt/format.h>

namespace memscape {

namespace {

Json lanesJson(const BankCase& request, const BankAccess& access)
{
    Json lanes = Json::array();
    for (std::size_t i = 0; i < access.lanes.size(); ++i) {
        const BankLane& lane = access.lanes[i];
        const std::uint32_t element = request.elements[i];
        lanes.push_back({{"lane", i},
                         {"element", element},
                         {"row", element / request.tile.columns},
                         {"column", element % request.tile.columns},
                         {"address", lane.address},
                         {"word", lane.word},
                         {"bank", lane.bank},
                         {"words", lane.words},
                         {"phase", lane.phase},
                         {"wavefront", lane.wavefront}});
    }
    return lanes;
}

Json phasesJson(const BankAccess& access)
{
    Json phases = Json::array();
    for (const BankPhase& phase : access.phases)
        phases.push_back({{"first", phase.firstLane},
                          {"lanes", phase.lanes},
                          {"degree", phase.degree},
                          {"first_wavefront", phase.firstWavefront}});
    return phases;
}

/// The same lanes with another tile; nothing where the sizes do not allow it.
void addCure(Json& cures, const Device& device, BankCase request, const char* key, const char* label,
             std::uint32_t padding, std::uint32_t granule, Json parameters)
{
    const auto tile = sharedTile(request.tile.width, request.tile.columns, padding, granule);
    if (!tile)
        return;
    request.tile = *tile;
    const auto access = bankAccess(device, request);
    if (!access)
        return;
    cures.push_back({{"key", key},
                     {"label", label},
                     {"wavefronts", access->wavefronts},
                     {"bytes", request.tileBytes()},
                     {"parameters", std::move(parameters)}});
}

Json curesJson(const Device& device, const BankCase& request)
{
    Json cures = Json::array();
    const auto changes = [](const char* padding, const char* swizzle) {
        return Json{{"padding", padding}, {"swizzle", swizzle}};
    };
    addCure(cures, device, request, "none", "as it is", 0, 0, changes("0", "none"));
    addCure(cures, device, request, "padding", "padded by 1", 1, 0, changes("1", "none"));
    addCure(cures, device, request, "xor", "XOR", 0, std::max(request.tile.width, bankBytes), changes("0", "xor"));
    if (request.tile.width < 16)
        addCure(cures, device, request, "xor16", "XOR, 16 B", 0, 16, changes("0", "xor16"));
    return cures;
}

} // namespace

Json bankDetail(const Device& device, const BankCase& request, const BankAccess& access)
{
    Json detail{{"tile",
                 {{"width", request.tile.width},
                  {"columns", request.tile.columns},
                  {"padding", request.tile.padding},
                  {"swizzle", request.tile.granule},
                  {"rows", request.rows},
                  {"bytes", request.tileBytes()}}},
                {"request",
                 {{"pattern", patternKey(request.pattern)},
                  {"stride", request.stride},
                  {"operation", request.isWrite ? "write" : "read"},
                  {"banks", sharedBanks},
                  {"word_bytes", bankBytes},
                  {"degree", access.degree},
                  {"wavefronts", access.wavefronts},
                  {"merged", access.isMerged}}},
                {"lanes", lanesJson(request, access)},
                {"phases", phasesJson(access)},
                {"cures", curesJson(device, request)}};
    if (!device.isGpu())
        detail["not_here"] =
            fmt::format("{} is a CPU: it has no shared memory in banks. Counted is what a warp of 32 lanes needs "
                        "on a GPU; cycles and bandwidth are those of a GPU: choose one as the device.",
                        device.name);
    return detail;
}

} // namespace memscape

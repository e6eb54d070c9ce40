// SPDX-License-Identifier: Apache-2.0
// Media that files lie on: the sequential rate and what a request waits. The ones that are shipped stand in
// resources/media/media.json; a user's own is a file of the same form that describes one:
//
//     {"format": "memscape-media", "version": 1, "media": [
//         {"id": "nas", "name": "our file server", "network": true,
//          "bandwidth": {"value": 110e6, "kind": "measured", "source": "dd, 2026-11-26"},
//          "latency": {"value": 0.002, "kind": "unverified", "source": "a guess"}}]}
//
// with B/s and s. The latency may be left out.
//
// Left out: rates that depend on the size or the number of requests, of writing, of a drive that is nearly full.
#pragma once

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/device/device.h"

#include <filesystem>
#include <string>
#include <vector>

namespace memscape {

struct Medium
{
    std::string id;   ///< "nvme4"
    std::string name; ///< "SSD, PCIe 4.0"
    bool isNetwork = false;
    Sourced bandwidth; ///< B/s
    Sourced latency;   ///< s; 0 where it is not known
};

/// Errors: json.format, json.version, json.missing, json.type, json.range, media.twice, each with its place.
Result<std::vector<Medium>> mediaFromJson(const Json& json, const std::string& place);

/// Errors: file.*, those of mediaFromJson().
Result<std::vector<Medium>> readMedia(const std::filesystem::path& file);

/// A user's own. Errors: those of readMedia(), media.several where the file describes more than one.
Result<Medium> readOwnMedium(const std::filesystem::path& file);

/// Those of resourcesFolder(), in the file's order, read once; empty where it cannot be read.
const std::vector<Medium>& shippedMedia();
/// Null where there is none.
const Medium* shippedMedium(const std::string& id);

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/provenance.h"

#include <nlohmann/json.hpp>

namespace memscape {

Json provenanceToJson(const Provenance& provenance, bool isComplete)
{
    Json json = provenance.machine;
    if (!provenance.time.empty())
        json["time"] = provenance.time;
    if (provenance.isForced)
        json["forced"] = *provenance.isForced;
    if (provenance.passes)
        json["passes"] = *provenance.passes;
    if (provenance.budget)
        json["budget_s"] = *provenance.budget;
    if (provenance.quality) {
        json["grade"] = std::string(1, provenance.quality->grade);
        json["reason"] = provenance.quality->reason;
    }
    if (!provenance.method.is_null())
        json["method"] = provenance.method;
    if (!provenance.samples.is_null())
        json["samples"] = provenance.samples;
    json["complete"] = isComplete;
    return json;
}

} // namespace memscape

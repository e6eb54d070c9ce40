// SPDX-License-Identifier: Apache-2.0
// The reference host for values that an operating system does not report of a CPU.
#pragma once

#include "core/device/device.h"
#include "core/device/host_facts.h"

namespace memscape {

struct HostReference
{
    Device device;         ///< of the catalogue, or typical values
    std::string name;      ///< "amd-epyc-9654 (catalogue)", "typical value"
    std::string vendor;    ///< "AMD"; empty when unknown
    bool sameCore = false; ///< the catalogue has this core
    double dramLimit = 0;  ///< B/s that this kind of socket cannot exceed; 0: no other limit known
};

/// By vendor, family and model as CPUID reports them; a virtual machine prefers a reference that
/// was measured in one. Never fails: without a match (or without the catalogue) it is typical
/// values.
HostReference hostReference(const HostFacts& facts);

} // namespace memscape

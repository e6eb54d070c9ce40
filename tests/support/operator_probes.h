// SPDX-License-Identifier: Apache-2.0
// Rows as memscape_probe's calibration writes them, of a machine of round numbers on two threads: 1 µs a call, 5 ps a
// FLOP of a product, 8 ps of a thread's matrix in a batch, 4 ps a byte of a pass, 10 GB/s behind a cache of 1 MiB, 50
// ps more for a byte of memory, 1 µs a page, and each work of its state 1 ms.
#pragma once

#include "core/base/json.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace memscape::test {

inline constexpr double knownCall = 1e-6, knownFlop = 5e-12, knownBatchedFlop = 8e-12, knownByte = 4e-12,
                        knownFarByte = 5e-11;

inline Json knownRow(const char* kind, double seconds)
{
    return {{"kind", kind}, {"seconds", seconds}, {"spread", 0.01}};
}

inline Json knownPass(const char* name, const char* pass, double elements, double seconds)
{
    Json row = knownRow("pass", seconds);
    row.update({{"operator", name}, {"pass", pass}, {"elements", elements}});
    return row;
}

inline Json knownProduct(const std::string& kind, double m, double n, double k, double count, double seconds)
{
    Json row = knownRow(kind.c_str(), seconds);
    row.update({{"m", m}, {"n", n}, {"k", k}, {"count", count}});
    return row;
}

inline void addKnownProducts(Json& rows)
{
    for (const double m : {32, 64, 256})
        for (const double n : {32, 96, 320})
            for (const double k : {64, 200}) {
                const double flops = 2 * m * n * k;
                for (const char* const way : {"forward", "input gradient", "weight gradient"}) {
                    rows.push_back(knownProduct(way, m, n, k, 1, knownCall + flops / 2 * knownFlop));
                    rows.push_back(knownProduct(std::string("batched ") + way, m, n, k, 8,
                                                knownCall + 4 * flops * knownBatchedFlop));
                    Json row = knownProduct(std::string("convolution ") + way, m, n, k, 1, 0);
                    row["window"] = 1;
                    row["seconds"] = knownCall + flops / 2 * knownFlop;
                    rows.push_back(std::move(row));
                }
            }
}

/// The same work with operands near and in memory.
inline void addKnownColdRows(Json& rows)
{
    for (const char* const way : {"forward", "input gradient", "weight gradient"}) {
        constexpr double near = 1e-4, bytes = 4 * (64.0 * 96 + 96 * 200 + 2 * 64 * 200);
        rows.push_back(knownProduct(std::string("near ") + way, 64, 200, 96, 1, near));
        rows.push_back(knownProduct(std::string("cold ") + way, 64, 200, 96, 1, near + bytes * knownFarByte));
    }
    for (const double far : {0.0, 1.0}) {
        Json row = knownRow(far > 0 ? "cold pass" : "near pass", 1e-5 + far * 16 * 4096 * knownFarByte);
        row["elements"] = 4096;
        rows.push_back(std::move(row));
    }
    for (const char* const work : {"core", "memory", "page", "call"})
        for (const char* const kind : {"state", "state at best"}) {
            Json row = knownRow(kind, 1e-3);
            row["operator"] = work;
            rows.push_back(std::move(row));
        }
}

/// What `detail.probes` holds.
inline Json knownProbes()
{
    Json rows = Json::array();
    for (const char* const kind :
         {"kernel call", "forward call", "backward call", "view call", "update call", "first touch"})
        rows.push_back(knownRow(kind, knownCall));
    addKnownProducts(rows);
    addKnownColdRows(rows);
    for (const double bytes : {0x1p18, 0x1p19, 0x1p20, 0x1p22, 0x1p24})
        rows.push_back([bytes] {
            Json row = knownRow("copy", bytes * (bytes <= 0x1p20 ? 1e-11 : 1e-10));
            row["bytes"] = bytes;
            return row;
        }());
    constexpr double elements = 262144;
    rows.push_back(knownPass("add", "forward", elements, knownCall + 12 * elements * knownByte));
    rows.push_back(knownPass("relu", "forward", elements, knownCall + 1e-10 * elements));
    rows.push_back(knownPass("gelu", "forward", elements, knownCall + 5e-10 * elements));
    rows.push_back(knownPass("gelu", "backward", elements, knownCall + 9e-10 * elements));
    for (const double window : {9, 25})
        for (const char* const way : {"forward", "input gradient", "weight gradient"}) {
            Json row = knownProduct(std::string("channelwise ") + way, 1152, 192, window, 1,
                                    knownCall + window / 9 * 1e-10 * 1152 * 192 * window);
            row["window"] = window;
            rows.push_back(std::move(row));
        }
    for (const auto& [format, rate] : {std::pair{"fp32", 200e9}, {"bf16", 400e9}}) {
        Json row = knownRow("rate", rate);
        row["operator"] = format;
        rows.push_back(std::move(row));
    }
    return rows;
}

} // namespace memscape::test

// SPDX-License-Identifier: GPL-3.0-or-later
// A `detail` as training-memory writes it, with numbers that are easy to check, for pictures and plots.
#pragma once

#include "core/base/json.h"

#include <nlohmann/json.hpp>

#include <string>

namespace memscape {

inline Json leverJson(const std::string& key, const std::string& value, const std::string& label, double saving,
                      double time, bool fits)
{
    return {{"key", key + "=" + value},
            {"label", label},
            {"changes", {{key, value}}},
            {"saving", saving},
            {"device_total", 186e9 - saving},
            {"time_change", time},
            {"fits", fits},
            {"acts_on", "activations"},
            {"why", label + " does it."},
            {"keeps_training", true}};
}

/// 27 + 54 + 100 + 5 GB = 186 GB needed on a device of 141 GB; six levers.
inline Json memoryDetail()
{
    const auto part = [](const char* key, const char* label, double bytes) {
        return Json{{"key", key}, {"label", label}, {"bytes", bytes}};
    };
    Json detail{
        {"model",
         {{"name", "llama-2-7b"}, {"title", "Llama-2-7B"}, {"family", "decoder"}, {"assumptions", Json::array()}}},
        {"capacity", {{"bytes", 141e9}, {"label", "NVIDIA H200"}}},
        {"parts",
         {part("weights", "weights", 27e9), part("optimizer_state", "optimizer state", 54e9),
          part("activations", "activations", 100e9), part("reserved_unused", "reserved, unused", 4.5e9),
          part("context", "device context", 0.5e9)}},
        {"fits", false},
        {"over", 45e9}};
    detail["levers"] = {leverJson("checkpointing", "block", "Checkpoint every block", 90e9, 0.31, true),
                        leverJson("attention", "flash", "Flash attention", 60e9, -0.18, true),
                        leverJson("optimizer", "adam-8bit", "8-bit Adam", 40e9, 0.001, false),
                        leverJson("zero", "1", "ZeRO stage 1", 30e9, 0.0, false),
                        leverJson("batch", "4", "Half the batch", 50e9, 0.04, true),
                        leverJson("accumulation", "2", "Accumulate over 2 micro-batches", 20e9, 0.04, false),
                        leverJson("offload", "optimizer", "Optimizer on the host", 54e9, 2.5, true)};
    detail["timeline"] = {
        {"event", {10, 20, 30, 40, 50}},
        {"categories",
         {{{"key", "weights"}, {"label", "weights"}, {"bytes", {27e9, 27e9, 27e9, 27e9, 27e9}}},
          {{"key", "activations"}, {"label", "activations"}, {"bytes", {1e9, 60e9, 100e9, 40e9, 0}}}}},
        {"phases",
         {{{"key", "forward"}, {"label", "forward"}, {"begin", 10}, {"end", 30}, {"micro_batch", 0}},
          {{"key", "backward"}, {"label", "backward"}, {"begin", 31}, {"end", 50}, {"micro_batch", 0}}}},
        {"peak", 30},
        {"capacity", 120e9},
        {"out_of_memory",
         {{"event", 26},
          {"phase", "forward"},
          {"module", "blocks.15"},
          {"name", "attention scores"},
          {"bytes", 8.6e9}}}};
    detail["peak"] = {{"event", 30},      {"phase", "forward"}, {"module", "blocks.31"},
                      {"name", "scores"}, {"allocated", 181e9}, {"live", Json::array()}};
    Json blocks = Json::array();
    for (int i = 0; i < 32; ++i) {
        const std::string path = "blocks." + std::to_string(i);
        detail["peak"]["live"].push_back({{"category", "activations"},
                                          {"module", path},
                                          {"name", "scores"},
                                          {"bytes", 3e9 - i * 1e7},
                                          {"count", 2}});
        blocks.push_back({{"name", std::to_string(i)},
                          {"bytes", 4e9},
                          {"children",
                           {{{"name", "scores"}, {"bytes", 3e9}, {"category", "activations"}},
                            {{"name", "weight"}, {"bytes", 1e9}, {"category", "weights"}}}}});
    }
    detail["peak"]["rest"] = {{"bytes", 1e9}, {"count", 99}};
    detail["tree"] = {{"name", ""},
                      {"bytes", 138e9},
                      {"children",
                       {{{"name", "blocks"}, {"bytes", 128e9}, {"children", blocks}},
                        {{"name", "embedding"}, {"bytes", 10e9}, {"category", "weights"}}}}};
    detail["textbook"] = {{{"formula", "sbh(34+5as/h) per layer"},
                           {"source", "Korthikanti et al. 2022"},
                           {"value", 110e9},
                           {"unit", "B"},
                           {"ours", 100e9},
                           {"difference", "no dropout"}}};
    return detail;
}

} // namespace memscape

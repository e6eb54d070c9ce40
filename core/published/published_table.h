// SPDX-License-Identifier: Apache-2.0
// Figures that others measured and published, as data: what a table's row says, and its setting in our parameters. One
// file for each table in resources/published/:
//
//     {"format": "memscape-published", "version": 1, "title": "LitGPT, resource tables",
//      "source": "Lightning-AI/litgpt, tutorials/resource-tables.md @4839345", "device": "nvidia-a100-40gb",
//      "parameters": ["precision=bf16"],
//      "rows": [{"row": "Llama 2 7B, LoRA, micro-batch 1", "family": "LoRA", "figure": "peak_reserved",
//                "value": 21.30, "unit": "GB", "parameters": ["model=llama-2-7b", "adapter=lora"]}]}
//
// `device`, `experiment` (training-memory where it is missing) and `parameters` of the file go for every row; a row's
// own come after them and win, and imply for others what they imply in a command (a library its defaults).
// `model=models/x.json` is looked for beside the file. A rate ("token/s") says with `per_step` how much of its work one
// step does, and becomes the step's time. `cannot` says why the program cannot express a row; `note` what was assumed
// that the source does not say. Left out: sweeps.
#pragma once

#include "core/experiment/experiment.h"

#include <filesystem>

namespace memscape {

struct PublishedRow
{
    std::string table;   ///< title of its file
    std::string source;  ///< file, commit or date
    std::string row;     ///< what finds it in the table
    std::string family;  ///< one of publishedFamilies()
    std::string device;  ///< id of the catalogue
    std::string figure;  ///< key of the experiment's figure
    std::string printed; ///< "21.3 GB"
    std::string note;
    std::string cannot;                     ///< why it is not predicted; empty: it is
    double value = 0;                       ///< as `printed`, in the figure's SI unit
    const Experiment* experiment = nullptr; ///< null where it cannot
    Parameters parameters;
};

/// "full training", "LoRA", "QLoRA", "FSDP", "inference", "step time".
const std::vector<std::string>& publishedFamilies();

/// resources/published, whose tables ship with the program.
std::filesystem::path publishedFolder();
/// The *.json of that folder by name. Errors: file.missing.
Result<std::vector<std::filesystem::path>> publishedFiles();

/// The rows of one file. Errors: file.*, json.*, claims.key (an unknown key), published.family, published.value,
/// published.twice, published.device, experiment.unknown, parameter.*; the place names file and row.
Result<std::vector<PublishedRow>> readPublished(const std::filesystem::path& file);

} // namespace memscape

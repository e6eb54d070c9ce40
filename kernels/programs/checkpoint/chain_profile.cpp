// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/checkpoint/chain_profile.h"

#include <algorithm>
#include <random>

namespace memscape {

namespace {

struct Walk
{
    Schedule schedule;
    MlpSave way = MlpSave::All;
};

} // namespace

std::string operationForm(OperationKind kind, MlpSave way)
{
    const std::string suffix = way == MlpSave::All ? " all" : " result";
    switch (kind) {
    case OperationKind::ForwardKeep:
    case OperationKind::ForwardDrop: return "forward";
    case OperationKind::ForwardSave: return "forward" + suffix;
    case OperationKind::Backward: return "backward" + suffix;
    case OperationKind::Loss: return "loss";
    case OperationKind::DiscardValue:
    case OperationKind::DiscardSaved: break;
    }
    return {};
}

void ChainProfile::add(const Schedule& schedule, MlpSave way, const Replay& replay, int pass)
{
    std::map<std::string, std::vector<double>> times;
    for (std::size_t k = 0; k < schedule.size(); ++k)
        times[operationForm(schedule[k].kind, way)].push_back(replay.steps[k].end - replay.steps[k].begin);
    for (const auto& [form, seconds] : times)
        m_samples[form].add(pass, seconds);
}

Result<void> ChainProfile::takePass(MlpDevice& device, const MlpShape& shape, std::int64_t arenaBytes, int stages,
                                    int pass)
{
    const MlpShape part{stages, shape.width, shape.batch};
    std::vector<Walk> walks{{saveEverything(stages), MlpSave::All},
                            {saveEverything(stages, MlpSave::Result), MlpSave::Result},
                            {keepInputs(stages), MlpSave::All}};
    std::shuffle(walks.begin(), walks.end(), std::mt19937_64(std::uint64_t(pass)));
    for (const Walk& walk : walks) {
        MEMSCAPE_TRY(run, execute(device, part, arenaBytes, walk.schedule));
        add(walk.schedule, walk.way, run.replay, pass);
    }
    return {};
}

double ChainProfile::median(const std::string& form) const
{
    const auto found = m_samples.find(form);
    return found == m_samples.end() ? 0 : summarize(found->second.merged()).median;
}

bool ChainProfile::isWhole() const
{
    const char* const forms[] = {"forward", "forward all", "forward result", "backward all", "backward result", "loss"};
    return std::all_of(std::begin(forms), std::end(forms),
                       [this](const char* form) { return m_samples.contains(form); });
}

Result<Chain> ChainProfile::chainOf(const MlpShape& shape) const
{
    MEMSCAPE_TRY(chain, mlpChain(shape));
    chain.name += ", measured";
    chain.lossTime = median("loss");
    for (Stage& stage : chain.stages) {
        stage.forward = median("forward");
        for (const MlpSave way : {MlpSave::All, MlpSave::Result}) {
            stage.options[std::size_t(way)].forward = median(operationForm(OperationKind::ForwardSave, way));
            stage.options[std::size_t(way)].backward = median(operationForm(OperationKind::Backward, way));
        }
    }
    return chain;
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// Every experiment, in the order of the rail. An explicit list: objects of a static library that
// no other file names would be dropped by the linker.
#include "core/experiment/experiment.h"

namespace memscape {

const Experiment& hierarchyExperiment();
const Experiment& strideExperiment();
const Experiment& bankConflictsExperiment();
const Experiment& transferExperiment();
const Experiment& loadingExperiment();
const Experiment& layoutExperiment();
const Experiment& inPlaceExperiment();
const Experiment& trainingMemoryExperiment();
const Experiment& inferenceMemoryExperiment();
const Experiment& checkpointExperiment();
const Experiment& batchSizeExperiment();
const Experiment& placementExperiment();
const Experiment& shardingExperiment();
const Experiment& allocatorExperiment();
const Experiment& attentionExperiment();
const Experiment& precisionExperiment();
const Experiment& rooflineExperiment();

const std::vector<const Experiment*>& experiments()
{
    static const std::vector<const Experiment*> all{
        &hierarchyExperiment(),       &strideExperiment(),     &bankConflictsExperiment(), &transferExperiment(),
        &loadingExperiment(),         &layoutExperiment(),     &inPlaceExperiment(),       &trainingMemoryExperiment(),
        &inferenceMemoryExperiment(), &checkpointExperiment(), &batchSizeExperiment(),     &placementExperiment(),
        &shardingExperiment(),        &allocatorExperiment(),  &attentionExperiment(),     &precisionExperiment(),
        &rooflineExperiment(),
    };
    return all;
}

} // namespace memscape

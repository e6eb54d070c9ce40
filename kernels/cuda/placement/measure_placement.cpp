// SPDX-License-Identifier: Apache-2.0
// `placement` on a GPU (kernels/programs/placement/placement_measurement.h): the device is a part of the GPU's memory
// that a counting pool hands out up to the limit, the link is the GPU's own. Products by cuBLASLt where it is
// installed, else by our own kernel, which is checked first.
//
// Each step of a run in turn lies between two events of an idle GPU, so short ones hold the microseconds of a launch.
// Left out: several GPUs, files.
#include "kernels/cuda/common/clock_watch.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/float_products.h"
#include "kernels/cuda/experiments.h"
#include "kernels/cuda/placement/gpu_machine.h"
#include "kernels/cuda/placement/placement.h"
#include "kernels/host/placement/adam.h"
#include "kernels/programs/placement/placement_measurement.h"

#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

class GpuPlacement final : public PlacementMeasurement
{
public:
    GpuPlacement(GpuSession& session, CublasLt* blas, const Device& device, const Clock& clock, RunSink& sink)
        : PlacementMeasurement(device, clock)
        , m_session(session)
        , m_blas(blas)
        , m_sink(sink)
        , m_hostSession(m_host, sink)
    { }

    Result<void> check() override { return host::checkAdam().result("placement"); }
    Json method() const override
    {
        return {{"product", productsText(m_blas)},
                {"time", "between events around the streams of operators and copies"},
                {"host_threads", m_threads},
                {"caches", "steady state: runs follow each other"},
                {"kernels", Json::array({{{"kernel", "placed program"}, {"check", checked()}}})}};
    }

protected:
    Result<std::unique_ptr<PlacedMachine>> machineFor(const PlacementCase&, const Parameters& point) override
    {
        m_threads = m_hostSession.team().size();
        return makePlacedMachine(m_session, m_blas, m_hostSession, point.choice("link") != "pageable",
                                 [this] { return m_sink.cancelled(); });
    }
    StoppingOptions loopOptions() const override { return StoppingOptions().perPass(sweepPasses); }

private:
    GpuSession& m_session;
    CublasLt* m_blas;
    RunSink& m_sink;
    const Device m_host; ///< nothing of it is asked
    host::HostSession m_hostSession;
    int m_threads = 0;
};

} // namespace

Checks checksOfPlacement(int)
{
    Checks checks;
    for (const PlacedElements operation :
         {PlacedElements::Add, PlacedElements::Multiply, PlacedElements::Relu, PlacedElements::ReluSlope})
        checks.push_back([=] { return checkPlacedElements(operation); });
    return checks;
}

Result<MeasuredRun> measurePlacement(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    for (const auto& check : checksOfPlacement(session.multiprocessors()))
        MEMSCAPE_CHECK(passedCheck(check()));
    MEMSCAPE_CHECK(passedCheck(checkMlpElements()));
    MEMSCAPE_TRY(blas, openProducts(sink));
    const Clock& clock = session.clock();
    GpuPlacement measurement(session, blas.get(), plan.device.device, clock, sink);
    MEMSCAPE_TRY(measured, runSweep(session, runStart, plan, measurement, sink));
    addLibrary(measured.provenance.machine, blas.get());
    return measured;
}

} // namespace memscape::cuda

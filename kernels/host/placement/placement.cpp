// SPDX-License-Identifier: Apache-2.0
// placement, measured on the host (kernels/programs/placement/placement_measurement.h): one core issues and computes, a
// second copies. Steps one by one run on one core.
#include "kernels/programs/placement/placement_measurement.h"

#include "kernels/host/checkpoint/checkpoint.h"
#include "kernels/host/measurement.h"
#include "kernels/host/placement/adam.h"
#include "kernels/host/placement/host_machine.h"
#include "kernels/host/placement/product_pace.h"
#include "kernels/host/transfer/transfer.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

class HostPlacement final : public PlacementMeasurement
{
public:
    explicit HostPlacement(HostSession& session)
        : PlacementMeasurement(session.device(), session.clock())
        , m_session(session)
        , m_product(fastestProduct(session))
    { }

    Result<void> check() override { return checkAdam().result("placement"); }

    /// The link of the copies and the pace of the products are probed in turn with the points.
    Result<SampleSets> visit(const Parameters& point, int pass) override
    {
        MEMSCAPE_TRY(sets, PlacementMeasurement::visit(point, pass));
        if (!m_pace) {
            MEMSCAPE_TRY(asked, placementCase(m_session.device(), point));
            MEMSCAPE_TRY(predicted, placementSeconds(m_session.device(), point, asked));
            MEMSCAPE_SET(m_pace, ProductPace::prepare(m_session, m_product.kernel, asked, predicted));
            if (auto plan = transferPlan(m_session, TransferKind::Copy))
                m_prober.add(std::move(*plan));
        }
        MEMSCAPE_CHECK(m_prober.take());
        MEMSCAPE_CHECK(m_pace->take());
        return sets;
    }
    RunProbes probes() const override
    {
        RunProbes probes{m_prober.samples(), {}};
        if (m_pace)
            probes.work.push_back(m_pace->samples());
        return probes;
    }

    Json method() const override
    {
        return {{"threads", std::min(2, m_session.team().size())},
                {"product", m_product.kernel.name},
                {"products_tried", m_product.tried},
                {"simd", isaText(widestIsa())},
                {"caches", "steady state: runs follow each other"},
                {"kernels", Json::array({{{"kernel", "placed program"}, {"check", checked()}}})}};
    }

protected:
    Result<std::unique_ptr<PlacedMachine>> machineFor(const PlacementCase& asked, const Parameters&) override
    {
        return makePlacedMachine(m_session, asked.sharing, m_product.kernel);
    }
    StoppingOptions loopOptions() const override { return m_session.passOptions(2); }
    std::vector<double> samplesOf(const StoppingRule& rule, double per) override
    {
        return m_session.samplesOf(rule, per);
    }

private:
    HostSession& m_session;
    ProductChoice m_product;
    LinkProber m_prober{[this] { return m_session.readTicks(); }};
    std::unique_ptr<ProductPace> m_pace;
};

} // namespace

std::unique_ptr<HostMeasurement> makePlacementMeasurement(HostSession& session)
{
    return std::make_unique<HostPlacement>(session);
}

} // namespace memscape::host

// SPDX-License-Identifier: Apache-2.0
// placement, measured on the host (kernels/programs/placement/placement_measurement.h): one core issues and computes, a
// second copies. Steps one by one run on one core.
#include "kernels/programs/placement/placement_measurement.h"

#include "kernels/host/checkpoint/checkpoint.h"
#include "kernels/host/measurement.h"
#include "kernels/host/placement/adam.h"
#include "kernels/host/placement/host_machine.h"

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
};

} // namespace

std::unique_ptr<HostMeasurement> makePlacementMeasurement(HostSession& session)
{
    return std::make_unique<HostPlacement>(session);
}

} // namespace memscape::host

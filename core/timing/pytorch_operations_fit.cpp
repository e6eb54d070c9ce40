// SPDX-License-Identifier: Apache-2.0
// From the probe's rows to the costs of PyTorch's operators: products by the fit of host_operations.h, every other kind
// by its own rows, and all of them slowed by what the machine did beside on average. Left out: rows of kinds that are
// not known here.
#include "core/timing/calibration_fit.h"
#include "core/timing/pytorch_operations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double grainOfProbe = 32768; // elements
constexpr double bytesOfSum = 12;      // of an element: two floats read, one written
constexpr double fewChannels = 16;     // of a picture: PyTorch makes no gradient of those

class PytorchFit
{
public:
    PytorchFit(const std::vector<OperatorProbe>& probes, int threads)
        : m_probes(probes)
        , m_threads(std::max(1, threads))
    { }

    Result<PytorchOperations> fitted()
    {
        PytorchOperations host;
        MEMSCAPE_TRY(call, oneOf("kernel call"));
        MEMSCAPE_TRY(forward, oneOf("forward call"));
        MEMSCAPE_TRY(backward, oneOf("backward call"));
        MEMSCAPE_TRY(view, oneOf("view call"));
        MEMSCAPE_TRY(update, oneOf("update call"));
        MEMSCAPE_TRY(page, oneOf("first touch"));
        m_call = call;
        host.forwardCall = forward;
        host.backwardCall = backward;
        host.viewCall = view;
        host.updateCall = update;
        host.firstTouch = page;
        MEMSCAPE_TRY(products, productsOf(std::string(), m_threads));
        MEMSCAPE_TRY(batched, productsOf("batched ", 1));
        MEMSCAPE_TRY(convolutions, productsOf("convolution ", m_threads));
        host.products = products;
        host.batched = batched;
        host.convolutions = convolutions;
        host.nearByte = products.perByte;
        addPasses(host);
        addChannelwise(host);
        for (const OperatorProbe& probe : m_probes)
            if (probe.kind == "rate" && probe.seconds > 0)
                host.rates[probe.operatorName] = probe.seconds;
        MEMSCAPE_CHECK(addMemory(host));
        MEMSCAPE_CHECK(addFarBytes(host));
        host.evidence = Evidence::Measured;
        return onAverage(std::move(host));
    }

private:
    static tl::unexpected<Error> notProbed(const std::string& kind)
    {
        return fail("calibration.probes", fmt::format("no time of PyTorch's '{}' was measured", kind),
                    "calibrate again when the machine is quieter");
    }

    static bool isGood(const OperatorProbe& probe) { return probe.seconds > 0 && std::isfinite(probe.seconds); }

    Result<double> oneOf(const std::string& kind) const
    {
        std::vector<double> found;
        for (const OperatorProbe& probe : m_probes)
            if (probe.kind == kind && isGood(probe))
                found.push_back(probe.seconds);
        if (found.empty())
            return notProbed(kind);
        std::sort(found.begin(), found.end());
        return median(found);
    }

    /// The shape of the product that a probe's pass is; of convolutions the forward one is told.
    static ProductShape shapeOf(const OperatorProbe& probe, HostOperation way)
    {
        if (probe.window == 0)
            return probe.shape;
        constexpr double quantum = 4; // channels of 16 bytes
        const auto& [m, n, k] = probe.shape;
        const double channels = std::ceil(k / probe.window / quantum) * quantum;
        switch (way) {
        case HostOperation::InputGradient: return {m, channels, n * probe.window};
        case HostOperation::WeightGradient: return {n, channels * probe.window, m};
        default: return {m, n, channels * probe.window};
        }
    }

    Result<HostOperations> productsOf(const std::string& family, int threads) const
    {
        std::vector<OperationProbe> rows{{HostOperation::Call, {}, m_call}};
        for (const OperatorProbe& probe : m_probes) {
            if (!isGood(probe))
                continue;
            if (probe.kind == "pass" && probe.operatorName == "add" && !probe.isBackward)
                rows.push_back({HostOperation::Elementwise, {probe.elements * bytesOfSum / 8, 1, 1}, probe.seconds});
            for (const auto way :
                 {HostOperation::Forward, HostOperation::InputGradient, HostOperation::WeightGradient}) {
                const bool isUnused = way == HostOperation::InputGradient && probe.window > 0
                    && probe.shape.k / probe.window < fewChannels;
                if (probe.kind != family + std::string(hostOperationText(way)) || isUnused)
                    continue;
                // Of a batch what one thread takes for one matrix.
                const double turns = std::ceil(probe.count / (threads > 1 ? 1.0 : double(m_threads)));
                rows.push_back({way, shapeOf(probe, way), m_call + std::max(0.0, probe.seconds - m_call) / turns});
            }
        }
        return fitHostOperations(rows, threads, 1, 16);
    }

    void addPasses(PytorchOperations& host) const
    {
        double calls[2] = {m_call, m_call};
        for (const OperatorProbe& probe : m_probes)
            if (probe.kind == "pass call" && isGood(probe))
                calls[probe.isBackward ? 1 : 0] = probe.seconds;
        for (const OperatorProbe& probe : m_probes) {
            if (probe.kind != "pass" || !isGood(probe) || !(probe.elements > 0))
                continue;
            const double busy = probe.operatorName == "flash_attention"
                ? double(m_threads)
                : std::clamp(std::ceil(probe.elements / grainOfProbe), 1.0, double(m_threads));
            const double call = calls[probe.isBackward ? 1 : 0];
            PassCost& cost = host.passes[probe.operatorName];
            (probe.isBackward ? cost.backward : cost.forward) =
                std::max(probe.seconds - call, 0.05 * probe.seconds) * busy / probe.elements;
        }
    }

    void addChannelwise(PytorchOperations& host) const
    {
        for (std::size_t window = 0; window < host.channelwise.size(); ++window) {
            const char* const names[] = {"channelwise forward", "channelwise input gradient",
                                         "channelwise weight gradient"};
            for (std::size_t pass = 0; pass < 3; ++pass) {
                std::vector<double> costs;
                for (const OperatorProbe& probe : m_probes)
                    if (probe.kind == names[pass] && isGood(probe) && (probe.window > 9) == (window == 1))
                        costs.push_back(std::max(probe.seconds - m_call, 0.05 * probe.seconds)
                                        / (probe.shape.m * probe.shape.n * probe.shape.k));
                std::sort(costs.begin(), costs.end());
                host.channelwise[window][pass] = costs.empty() ? 0 : median(costs);
            }
        }
    }

    /// The bandwidth of the largest copy, and the largest that is clearly faster.
    Result<void> addMemory(PytorchOperations& host) const
    {
        double largest = 0, fastest = 0;
        for (const OperatorProbe& probe : m_probes) {
            if (probe.kind != "copy" || !isGood(probe))
                continue;
            fastest = std::max(fastest, probe.bytes / probe.seconds);
            if (probe.bytes > largest) {
                largest = probe.bytes;
                host.bandwidth = probe.bytes / probe.seconds;
            }
        }
        if (!(host.bandwidth > 0))
            return notProbed("copy");
        for (const OperatorProbe& probe : m_probes)
            if (probe.kind == "copy" && isGood(probe) && probe.bytes > host.cache
                && probe.bytes / probe.seconds >= std::sqrt(fastest * host.bandwidth))
                host.cache = probe.bytes < largest ? probe.bytes : host.cache;
        return {};
    }

    /// What operands in memory add to a work, by each of their bytes; what it writes counts twice.
    Result<double> farByteOf(const std::string& work) const
    {
        std::vector<double> found;
        for (const OperatorProbe& near : m_probes)
            for (const OperatorProbe& cold : m_probes) {
                const auto& [m, n, k] = cold.shape;
                const bool isSame = near.kind == "near " + work && cold.kind == "cold " + work && near.shape.m == m
                    && near.shape.n == n && near.shape.k == k;
                if (!isSame || !isGood(near) || !isGood(cold))
                    continue;
                const double bytes =
                    sizeof(float) * (cold.elements > 0 ? 4 * cold.elements : m * k + k * n + 2 * m * n);
                found.push_back(std::max(0.0, cold.seconds - near.seconds) / bytes);
            }
        if (found.empty())
            return notProbed("cold " + work);
        std::sort(found.begin(), found.end());
        return median(found);
    }

    Result<void> addFarBytes(PytorchOperations& host) const
    {
        MEMSCAPE_TRY(pass, farByteOf("pass"));
        host.farByte = pass;
        for (const auto way : {HostOperation::Forward, HostOperation::InputGradient, HostOperation::WeightGradient}) {
            MEMSCAPE_TRY(operand, farByteOf(std::string(hostOperationText(way))));
            host.farOperand[std::size_t(way)] = operand;
        }
        if (const auto kept = oneOf("retention"))
            host.retention = *kept;
        return {};
    }

    std::optional<HostState> stateOf(const std::string& kind) const
    {
        HostState state;
        for (const auto& [name, seconds] : worksOfState) {
            for (const OperatorProbe& probe : m_probes)
                if (probe.kind == kind && probe.operatorName == name && isGood(probe))
                    state.*seconds = probe.seconds;
            if (!(state.*seconds > 0))
                return std::nullopt;
        }
        return state;
    }

    /// Operators were measured at their best; a step meets them as the works of the state were on average. Where those
    /// took more than twice as long, others used the machine, and the best is what is known of it.
    PytorchOperations onAverage(PytorchOperations host) const
    {
        const auto mean = stateOf("state"), best = stateOf("state at best");
        if (!mean || !best)
            return host;
        HostState times;
        for (const auto& [name, seconds] : worksOfState)
            times.*seconds = std::max(1.0, *mean.*seconds / *best.*seconds);
        host.state = best;
        if (std::max({times.core, times.memory, times.page, times.call}) > 2)
            return host;
        host = slowed(std::move(host), times);
        host.state = mean;
        return host;
    }

    const std::vector<OperatorProbe>& m_probes;
    int m_threads;
    double m_call = 0;
};

} // namespace

Result<PytorchOperations> fitPytorchOperations(const std::vector<OperatorProbe>& probes, int threads)
{
    return PytorchFit(probes, threads).fitted();
}

Result<std::vector<OperatorProbe>> pytorchProbesFromJson(const JsonReader& reader)
{
    MEMSCAPE_TRY(rows, reader.items());
    std::vector<OperatorProbe> probes;
    for (const JsonReader& row : rows) {
        OperatorProbe probe;
        MEMSCAPE_TRY(kind, row.string("kind"));
        MEMSCAPE_TRY(seconds, row.number("seconds"));
        MEMSCAPE_TRY(name, row.string("operator", {}));
        MEMSCAPE_TRY(pass, row.string("pass", {}));
        MEMSCAPE_TRY(m, row.number("m", 1));
        MEMSCAPE_TRY(n, row.number("n", 1));
        MEMSCAPE_TRY(k, row.number("k", 1));
        MEMSCAPE_TRY(count, row.number("count", 1));
        MEMSCAPE_TRY(window, row.number("window", 0));
        MEMSCAPE_TRY(elements, row.number("elements", 0));
        MEMSCAPE_TRY(bytes, row.number("bytes", 0));
        probes.push_back({kind, name, pass == "backward", {m, n, k}, count, window, elements, bytes, seconds});
    }
    return probes;
}

} // namespace memscape

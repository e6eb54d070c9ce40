// SPDX-License-Identifier: GPL-3.0-or-later
// Predictions of a page from another basis than the shown one: the vendor's numbers alone, and the device without its
// calibration. Each is asked like the shown one, newest wins, and one that its basis cannot answer is left out.
#pragma once

#include "app/document/predictor.h"
#include "app/pages/curves.h"
#include "app/workers/devices.h"
#include "core/experiment/probed_links.h"

#include <QObject>

#include <array>
#include <chrono>

namespace memscape {

/// "calibrated", "catalogue", "described", "derived", "datasheet": for a legend.
QString basisName(const Device& device);

/// "as probed in the run: pipe, α 39 µs, β 2.4 GB/s": for a legend.
QString probedName(const ProbedRun& run);

class BasisPredictions : public QObject
{
    Q_OBJECT

public:
    explicit BasisPredictions(QObject* parent = nullptr);

    void request(const std::string& experiment, const DeviceEntry& device, const Parameters& parameters);
    void clear();
    /// Those that have an answer; what they point to holds until the next changed().
    std::vector<OtherBasis> answers() const;
    bool isBusy() const;

signals:
    void changed();

private:
    static constexpr std::chrono::milliseconds patience{2}; // the shown prediction has its own
    struct Basis
    {
        CurveRole role;
        QString name = {};
        std::unique_ptr<Predictor> predictor = std::make_unique<Predictor>(nullptr, patience);
        std::shared_ptr<const Record> record = {};
        bool wanted = false;
    };
    void ask(Basis& basis, const std::string& experiment, const Device& device, const Parameters& parameters);

    std::array<Basis, 2> m_bases{Basis{CurveRole::Datasheet}, Basis{CurveRole::Uncalibrated}};
};

} // namespace memscape

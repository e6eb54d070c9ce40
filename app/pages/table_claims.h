// SPDX-License-Identifier: GPL-3.0-or-later
// The entries of the table of claims that a page shows: those of its experiment with a case of exactly these
// parameters, judged beside the window's thread. An experiment that judges a claim itself does so at any parameters and
// stays unasked here; where it judges one that the table judges by rules, the table's verdict takes its place at that
// case.
#pragma once

#include "app/pages/background_work.h"
#include "core/device/device.h"
#include "core/experiment/experiment.h"

#include <QTimer>

namespace memscape {

class TableClaims : public QObject
{
    Q_OBJECT

public:
    explicit TableClaims(const Experiment& experiment, QObject* parent = nullptr);

    /// found() follows when nothing has moved for a moment; the claims of other parameters go at once.
    void request(const Device& device, const Parameters& parameters);
    bool isBusy() const { return m_rest.isActive() || m_work.isBusy(); }
    /// `own` and those of the table. Of one that both judge the table's, unless `own` is by what was measured.
    std::vector<Claim> beside(std::vector<Claim> own, bool isMeasured) const;

signals:
    void found(); ///< others than before

private:
    void start();

    const Experiment& m_experiment;
    Device m_device;
    Parameters m_parameters;
    std::vector<Claim> m_claims;
    QTimer m_rest;
    BackgroundWork m_work;
};

} // namespace memscape

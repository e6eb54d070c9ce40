// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/basis_predictions.h"

#include "app/settings/words.h"
#include "core/device/datasheet.h"

#include <algorithm>

namespace memscape {

QString basisName(const Device& device)
{
    if (device.calibration)
        return QObject::tr("calibrated");
    static const std::pair<const char*, const char*> names[] = {
        {"datasheet", QT_TRANSLATE_NOOP("QObject", "datasheet")},
        {"catalogue", QT_TRANSLATE_NOOP("QObject", "catalogue")},
        {"described", QT_TRANSLATE_NOOP("QObject", "described")},
        {"derived", QT_TRANSLATE_NOOP("QObject", "derived")}};
    for (const auto& [basis, name] : names) {
        if (device.basis == basis)
            return QObject::tr(name);
    }
    return QString::fromStdString(device.basis);
}

QString probedName(const ProbedRun& run)
{
    QStringList links;
    for (const ProbedLink& link : run.links)
        links << toQString(link.text());
    return QObject::tr("probed in the run: %1").arg(links.join(QStringLiteral("; ")));
}

BasisPredictions::BasisPredictions(QObject* parent)
    : QObject(parent)
{
    for (Basis& basis : m_bases) {
        connect(basis.predictor.get(), &Predictor::predicted, this,
                [this, &basis](const std::shared_ptr<const Record>& record) {
                    basis.record = basis.wanted ? record : nullptr;
                    emit changed();
                });
        connect(basis.predictor.get(), &Predictor::failed, this, [this, &basis] {
            basis.record.reset();
            emit changed();
        });
    }
}

void BasisPredictions::ask(Basis& basis, const std::string& experiment, const Device& device,
                           const Parameters& parameters)
{
    basis.wanted = true;
    basis.name = basisName(device);
    basis.predictor->request(experiment, device, parameters);
}

void BasisPredictions::request(const std::string& experiment, const DeviceEntry& device, const Parameters& parameters)
{
    auto& [datasheet, uncalibrated] = m_bases;
    ask(datasheet, experiment, datasheetOf(device.uncalibrated.value_or(device.device)), parameters);
    if (device.uncalibrated) {
        ask(uncalibrated, experiment, *device.uncalibrated, parameters);
    } else {
        uncalibrated.wanted = false;
        uncalibrated.record.reset();
    }
}

void BasisPredictions::clear()
{
    for (Basis& basis : m_bases) {
        basis.wanted = false; // an answer that is on its way is not taken
        basis.record.reset();
    }
}

std::vector<OtherBasis> BasisPredictions::answers() const
{
    std::vector<OtherBasis> answers;
    for (const Basis& basis : m_bases) {
        if (basis.record && basis.record->predicted)
            answers.push_back({basis.name, basis.role, &*basis.record->predicted});
    }
    return answers;
}

bool BasisPredictions::isBusy() const
{
    return std::ranges::any_of(m_bases, [](const Basis& basis) { return basis.wanted && basis.predictor->isBusy(); });
}

} // namespace memscape

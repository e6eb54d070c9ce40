// SPDX-License-Identifier: GPL-3.0-or-later
// A textbook's or course's claim beside our number for the device and parameters on the page.
#pragma once

#include "app/pages/cards/card.h"
#include "core/base/json.h"
#include "core/experiment/experiment.h"

namespace memscape {

/// Of a record's `detail`; what is missing or of another kind is left out.
std::vector<Claim> readClaims(const Json& detail);

class ClaimsCard : public Card
{
    Q_OBJECT

public:
    explicit ClaimsCard(QWidget* parent = nullptr);

    /// Hidden while there is no claim.
    void setClaims(const std::vector<Claim>& claims, ByteStyle bytes);

signals:
    void claimWanted(const QString& id); ///< its entry on the page Claims

private:
    struct Lines
    {
        QLabel* quote;
        QLabel* verdict;
        QLabel* source;
    };
    std::vector<Lines> m_lines; // reused while a slider moves
};

} // namespace memscape

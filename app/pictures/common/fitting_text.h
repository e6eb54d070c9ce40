// SPDX-License-Identifier: GPL-3.0-or-later
// A paragraph in a box: as many of its words as have room, with "…" where some have not.
#pragma once

#include <QFont>
#include <QString>

namespace memscape {

QString fittingText(QString text, const QFont& font, double width, double height);

} // namespace memscape

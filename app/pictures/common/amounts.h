// SPDX-License-Identifier: GPL-3.0-or-later
// How a picture writes bytes and seconds.
#pragma once

#include "app/settings/words.h"
#include "core/base/number.h"

namespace memscape {

struct Amounts
{
    ByteStyle byteStyle = ByteStyle::Binary;

    QString bytesText(double bytes) const { return toQString(quantityText(bytes, Unit::Byte, byteStyle)); }
    QString secondsText(double seconds) const { return toQString(quantityText(seconds, Unit::Second)); }
};

} // namespace memscape

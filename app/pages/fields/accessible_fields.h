// SPDX-License-Identifier: GPL-3.0-or-later
// The accessible names and values of lists and sliders. Qt's own interface calls a list by the value
// it shows and leaves its label out (on Linux), and a slider's value is the position of its handle:
// "37" for 24 MiB.
#pragma once

namespace memscape {

/// For all lists and QuietSliders.
/// The second call and later ones do nothing.
void installAccessibleFields();

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// How long a test waits for what should happen "at once" (a run that is cancelled, a worker whose pipe is closed)
// before it says that it never will. Generous: the machine may be busy, and speed is the benchmarks' subject.
#pragma once

namespace memscape::test {

constexpr int notStuck = 10'000; ///< ms

} // namespace memscape::test

// SPDX-License-Identifier: Apache-2.0
// What `loading` needs of a machine: a file of 128 MiB, read cold and from the page cache by each method, how large the
// page cache's pieces get, and how fast numbers become those of another format. Where no file can be written, or none
// can be cold, the links stay without points, and a note says why.
#pragma once

#include "core/timing/page_cache.h"
#include "kernels/host/link_prober.h"
#include "kernels/host/loading/loading.h"

#include <optional>
#include <string>
#include <vector>

namespace memscape::host {

/// Its plans must not outlive it.
class FileProber
{
public:
    explicit FileProber(HostSession& session)
        : m_session(session)
    { }

    /// Each method of reading, cold and warm.
    std::vector<LinkPlan> readings();
    /// Each format of a file into each that is loaded.
    std::vector<LinkPlan> conversions();

    /// Seconds of reading the mapped file, by whose faults pageCache() is known then. Errors: run.cancelled,
    /// check.failed; nothing where the file cannot be read.
    Result<std::vector<double>> measurePageCache();
    const PageCache& pageCache() const { return m_pageCache; }

    /// Why a file was not read, each reason once.
    const std::vector<std::string>& notes() const { return m_notes; }

private:
    Result<const LoadingFile*> file();
    Result<std::vector<double>> notedUnlessRead(Result<std::vector<double>> seconds);

    HostSession& m_session;
    LoadingFiles m_files;
    std::optional<Error> m_fileError; ///< the first of file(), which is not tried again
    PageCache m_pageCache;
    std::vector<std::string> m_notes;
};

} // namespace memscape::host

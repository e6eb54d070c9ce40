// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker/line_writer.h"

#include <cerrno>
#include <string>

#include <poll.h>
#include <unistd.h>

namespace memscape {

void LineWriter::write(const protocol::Event& event)
{
    const std::string line = protocol::encode(event);
    const std::lock_guard lock(m_mutex);
    std::size_t done = 0;
    while (done < line.size() && !m_broken) {
        const ssize_t count = ::write(m_descriptor, line.data() + done, line.size() - done);
        if (count >= 0) {
            done += static_cast<std::size_t>(count);
        } else if (errno == EAGAIN) {
            pollfd waiting{m_descriptor, POLLOUT, 0};
            ::poll(&waiting, 1, 1000);
        } else if (errno != EINTR) {
            m_broken = true;
        }
    }
}

} // namespace memscape

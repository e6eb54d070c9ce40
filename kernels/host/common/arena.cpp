// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/arena.h"

#include "core/base/number.h"
#include "core/base/rounding.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace memscape::host {

namespace {

constexpr std::size_t hugePage = std::size_t{2} << 20;
constexpr double shareOfMemory = 0.8;

struct Range
{
    std::uintptr_t begin = 0, end = 0;
};

/// "7f12a4000000-7f12b4000000 rw-p …" of smaps; an empty range for any other line.
Range mappingOf(const std::string& line)
{
    Range range;
    const char* const last = line.data() + line.size();
    const auto [dash, error] = std::from_chars(line.data(), last, range.begin, 16);
    if (error != std::errc() || dash == last || *dash != '-')
        return {};
    const auto [space, error2] = std::from_chars(dash + 1, last, range.end, 16);
    if (error2 != std::errc() || space == last || *space != ' ')
        return {};
    return range;
}

} // namespace

Result<Buffer> allocate(std::size_t bytes, Pages pages, MemoryMeter& meter)
{
    Buffer buffer;
    // One huge page more than asked, so that the data can start on a huge page.
    buffer.m_mappedBytes = (bytes + 2 * hugePage - 1) / hugePage * hugePage + hugePage;
    if (bytes == 0 || buffer.m_mappedBytes < bytes)
        return fail("run.memory", "an array of no bytes or of too many was requested");
    void* const mapping =
        mmap(nullptr, buffer.m_mappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
        return fail(
            "run.memory",
            fmt::format("the system refused an array of {}", quantityText(static_cast<double>(bytes), Unit::Byte)),
            "choose fewer bytes, or close other programs");
    buffer.m_mapping = mapping;
    const auto address = reinterpret_cast<std::uintptr_t>(mapping);
    buffer.m_data = reinterpret_cast<std::byte*>(roundedUp(address, hugePage));
    buffer.m_bytes = bytes;
    buffer.m_meter = &meter;
    // A refusal (an old kernel, transparent_hugepage=never) shows in hugeShare().
    madvise(mapping, buffer.m_mappedBytes, pages == Pages::Huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    meter.add(static_cast<std::int64_t>(bytes));
    return buffer;
}

Buffer::~Buffer()
{
    release();
}

Buffer::Buffer(Buffer&& other) noexcept
{
    *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept
{
    if (this != &other) {
        release();
        m_data = std::exchange(other.m_data, nullptr);
        m_bytes = std::exchange(other.m_bytes, 0);
        m_mapping = std::exchange(other.m_mapping, nullptr);
        m_mappedBytes = std::exchange(other.m_mappedBytes, 0);
        m_meter = std::exchange(other.m_meter, nullptr);
    }
    return *this;
}

void Buffer::release()
{
    if (!m_mapping)
        return;
    munmap(m_mapping, m_mappedBytes);
    m_meter->remove(static_cast<std::int64_t>(m_bytes));
    m_mapping = nullptr;
}

double Buffer::hugeShare() const
{
    if (m_bytes == 0)
        return 0;
    const auto begin = reinterpret_cast<std::uintptr_t>(m_data);
    const auto end = begin + m_bytes;
    std::ifstream smaps("/proc/self/smaps");
    bool ours = false;
    double huge = 0;
    for (std::string line; std::getline(smaps, line);) {
        if (const Range range = mappingOf(line); range.end > range.begin) {
            ours = range.begin < end && range.end > begin;
        } else if (ours && line.starts_with("AnonHugePages:")) {
            const std::size_t digits = line.find_first_of("0123456789");
            std::int64_t kilobytes = 0;
            if (digits != std::string::npos)
                std::from_chars(line.data() + digits, line.data() + line.size(), kilobytes);
            huge += static_cast<double>(kilobytes) * 1024;
        }
    }
    return std::min(1.0, huge / static_cast<double>(m_bytes));
}

Result<void> checkFits(double bytes, double available)
{
    if (bytes <= shareOfMemory * available)
        return {};
    return fail("run.memory",
                fmt::format("the arrays would take {} and {} of memory are available", quantityText(bytes, Unit::Byte),
                            quantityText(available, Unit::Byte)),
                fmt::format("stay below {} (80 %), or close other programs",
                            quantityText(shareOfMemory * available, Unit::Byte)));
}

Result<void> checkFits(double bytes)
{
    const auto available = availableMemory();
    if (!available)
        return {};
    return checkFits(bytes, static_cast<double>(*available));
}

} // namespace memscape::host

// SPDX-License-Identifier: Apache-2.0
// Reading what Linux reports about its CPU: see host_facts.h. A cache that several CPUs share appears
// under each of them; it is read once, under the first, so that 200 CPUs cost a few hundred small
// reads and not thousands.
#include "core/device/host_facts.h"

#include "core/base/number.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

/// The first line of a small file; sysfs says 4096 bytes for every one of them.
std::optional<std::string> firstLine(const fs::path& path)
{
    std::ifstream file(path);
    std::string line;
    if (!file || !std::getline(file, line))
        return std::nullopt;
    return std::string(trimmed(line.substr(0, 4096)));
}

std::optional<double> numberIn(const fs::path& path)
{
    const auto text = firstLine(path);
    const auto value = text ? parseNumber(*text) : Result<double>(fail("file.missing", ""));
    return value ? std::optional<double>(*value) : std::nullopt;
}

/// "32K", "1024K", "8M": kernel sizes are powers of two without the i.
std::optional<double> sizeFrom(std::string text)
{
    double factor = 1;
    if (!text.empty()) {
        const char suffix = text.back();
        factor = suffix == 'K' ? 0x1p10 : suffix == 'M' ? 0x1p20 : suffix == 'G' ? 0x1p30 : 1;
        if (factor != 1)
            text.pop_back();
    }
    const auto value = parseNumber(text);
    if (!value || *value <= 0 || *value * factor > 1e12)
        return std::nullopt;
    return *value * factor;
}

std::vector<int> onlineCpus(const fs::path& cpuFolder)
{
    if (const auto online = firstLine(cpuFolder / "online")) {
        if (auto cpus = parseCpuList(*online); !cpus.empty())
            return cpus;
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < 65536; ++cpu) {
        std::error_code error;
        if (!fs::exists(cpuFolder / fmt::format("cpu{}", cpu), error))
            break;
        cpus.push_back(cpu);
    }
    return cpus;
}

int countCores(const fs::path& cpuFolder, const std::vector<int>& cpus)
{
    std::set<std::string> cores;
    for (const int cpu : cpus) {
        const fs::path topology = cpuFolder / fmt::format("cpu{}", cpu) / "topology";
        auto siblings = firstLine(topology / "thread_siblings_list");
        if (!siblings)
            siblings = firstLine(topology / "core_cpus_list");
        cores.insert(siblings.value_or(fmt::format("{}", cpu)));
    }
    return std::max(1, static_cast<int>(cores.size()));
}

/// A number of the cache that must be a positive whole one; unknown with a note when it is not.
double cacheNumber(const fs::path& path, const std::string& place, HostFacts& facts)
{
    const auto text = firstLine(path);
    if (!text)
        return std::numeric_limits<double>::quiet_NaN();
    const auto value = parseNumber(*text);
    if (value && *value > 0 && *value <= 1e9 && *value == std::floor(*value))
        return *value;
    if (!value || *value != 0) { // 0 ways is the kernel's "unknown"
        facts.notes.push_back(
            fmt::format("{}/{} reads \"{}\" and is ignored", place, path.filename().string(), quotedForMessage(*text)));
    }
    return std::numeric_limits<double>::quiet_NaN();
}

CacheFacts readCache(const fs::path& folder, int level, const std::string& place, HostFacts& facts)
{
    CacheFacts cache;
    cache.level = level;
    cache.place = place;
    cache.lineBytes = cacheNumber(folder / "coherency_line_size", place, facts);
    cache.ways = cacheNumber(folder / "ways_of_associativity", place, facts);
    const auto text = firstLine(folder / "size");
    if (const auto bytes = sizeFrom(text.value_or(""))) {
        cache.bytes = *bytes;
    } else if (text) {
        facts.notes.push_back(fmt::format("{}/size reads \"{}\" and is ignored", place, quotedForMessage(*text)));
    }
    const double sets = cacheNumber(folder / "number_of_sets", place, facts);
    if (!std::isfinite(cache.ways))
        cache.ways = std::floor(cache.bytes / (cache.lineBytes * sets));
    if (!(cache.ways >= 1))
        cache.ways = std::numeric_limits<double>::quiet_NaN();
    return cache;
}

/// Collects the caches of all CPUs; those of the first CPU with each level describe the level.
class CacheScan
{
public:
    explicit CacheScan(HostFacts& facts)
        : m_facts(facts)
    { }

    void visit(const fs::path& cpuFolder, int cpu)
    {
        if (m_covered.count(cpu))
            return;
        for (int index = 0; index < 16; ++index) {
            const std::string inside = fmt::format("cpu{}/cache/index{}", cpu, index);
            if (!visitCache(cpuFolder / inside, "/sys/devices/system/cpu/" + inside, cpu))
                break;
        }
    }

    void finish()
    {
        for (auto& [level, cache] : m_levels)
            m_facts.caches.push_back(cache);
        if (!m_otherSizes.empty()) {
            m_facts.notes.push_back(fmt::format("cores differ: the caches are those of the first core; others have {}",
                                                fmt::join(m_otherSizes, ", ")));
        }
    }

private:
    bool visitCache(const fs::path& folder, const std::string& place, int cpu)
    {
        const auto type = firstLine(folder / "type");
        if (!type)
            return false;
        const auto level = numberIn(folder / "level");
        if (*type == "Instruction")
            return true;
        if (!level || *level < 1 || *level > 4 || *level != std::floor(*level)) {
            m_facts.notes.push_back(place + "/level is not 1 to 4; the cache is ignored");
            return true;
        }
        const int number = static_cast<int>(*level);
        const auto shared = firstLine(folder / "shared_cpu_list");
        if (!m_seen.insert({number, shared.value_or(fmt::format("{}", cpu))}).second)
            return true;
        if (number == 1) {
            for (const int sibling : parseCpuList(shared.value_or("")))
                m_covered.insert(sibling);
        }
        add(readCache(folder, number, place, m_facts));
        return true;
    }

    void add(const CacheFacts& cache)
    {
        const auto [known, isNew] = m_levels.try_emplace(cache.level, cache);
        ++known->second.instances;
        if (!isNew && std::isfinite(cache.bytes) && cache.bytes != known->second.bytes) {
            m_otherSizes.insert(fmt::format("L{} {}", cache.level, quantityText(cache.bytes, Unit::Byte)));
        }
    }

    HostFacts& m_facts;
    std::map<int, CacheFacts> m_levels;
    std::set<std::pair<int, std::string>> m_seen;
    std::set<int> m_covered;
    std::set<std::string> m_otherSizes;
};

/// The first processor's block. The rest is only counted when sysfs does not give their number: the kernel asks every
/// core for its clock while this file is read.
void readExtensions(const std::string& words, HostFacts& facts)
{
    for (const std::string& word : split(words, ' ')) {
        if (!word.empty())
            facts.extensions.insert(word);
    }
    facts.virtualMachine = facts.extensions.count("hypervisor") > 0;
}

void readCpuInfo(const fs::path& path, bool countAll, HostFacts& facts)
{
    std::ifstream file(path);
    std::string line;
    int processors = 0;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos)
            continue;
        const std::string key(trimmed(std::string_view(line).substr(0, colon)));
        const std::string value(trimmed(std::string_view(line).substr(colon + 1)));
        if (key == "processor" && ++processors > 1 && !countAll)
            break;
        if (processors > 1)
            continue;
        const auto number = parseNumber(value);
        if (key == "vendor_id")
            facts.vendor = value;
        else if (key == "model name" || (key == "Model" && facts.name.empty()))
            facts.name = quotedForMessage(value, 120);
        else if (key == "cpu family" && number)
            facts.family = static_cast<int>(std::clamp(*number, -1.0, 1e6));
        else if (key == "model" && number)
            facts.model = static_cast<int>(std::clamp(*number, -1.0, 1e6));
        else if (key == "cpu MHz" && number && *number > 1 && *number < 1e5)
            facts.infoHz = *number * 1e6;
        else if (key == "flags" || key == "Features")
            readExtensions(value, facts);
    }
    facts.threads = std::max(1, processors);
    facts.cores = facts.threads;
}

void readMemory(const fs::path& root, HostFacts& facts)
{
    std::ifstream file(root / "proc/meminfo");
    std::string line;
    while (std::getline(file, line)) {
        if (line.rfind("MemTotal:", 0) != 0)
            continue;
        const auto words = split(std::string(trimmed(line.substr(9))), ' ');
        const auto kilobytes = parseNumber(words.front());
        if (kilobytes && *kilobytes > 0 && *kilobytes < 1e14)
            facts.memoryBytes = *kilobytes * 1024;
        break;
    }
    const auto pages = firstLine(root / "sys/kernel/mm/transparent_hugepage/enabled");
    if (!pages)
        return;
    const std::size_t open = pages->find('[');
    const std::size_t close = pages->find(']');
    if (open != std::string::npos && close != std::string::npos && close > open)
        facts.hugePages = pages->substr(open + 1, close - open - 1);
}

} // namespace

std::vector<int> parseCpuList(const std::string& text)
{
    std::vector<int> cpus;
    for (const std::string& part : split(text, ',')) {
        const auto ends = split(part, '-');
        if (ends.empty() || ends.size() > 2)
            return {};
        const auto first = parseNumber(trimmed(ends.front()));
        const auto last = parseNumber(trimmed(ends.back()));
        if (!first || !last || *first < 0 || *last < *first || *last >= 65536)
            return {};
        for (int cpu = static_cast<int>(*first); cpu <= static_cast<int>(*last); ++cpu)
            cpus.push_back(cpu);
        if (cpus.size() > 65536)
            return {};
    }
    return cpus;
}

HostFacts readHostFacts(const fs::path& root)
{
    HostFacts facts;
    const fs::path cpuFolder = root / "sys/devices/system/cpu";
    const std::vector<int> cpus = onlineCpus(cpuFolder);
    readCpuInfo(root / "proc/cpuinfo", cpus.empty(), facts);
    if (!cpus.empty()) {
        facts.threads = static_cast<int>(cpus.size());
        facts.cores = countCores(cpuFolder, cpus);
    }
    CacheScan scan(facts);
    for (const int cpu : cpus)
        scan.visit(cpuFolder, cpu);
    scan.finish();
    const int first = cpus.empty() ? 0 : cpus.front();
    const auto kilohertz = numberIn(cpuFolder / fmt::format("cpu{}", first) / "cpufreq/cpuinfo_max_freq");
    if (kilohertz && *kilohertz > 1e3 && *kilohertz < 1e8)
        facts.boostHz = *kilohertz * 1e3;
    readMemory(root, facts);
    facts.nodes = readNumaNodes(root);
    return facts;
}

} // namespace memscape

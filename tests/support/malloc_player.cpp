// SPDX-License-Identifier: Apache-2.0
// malloc_player: the C library's own malloc plays requests as PyTorch makes them on a processor
// (c10/core/impl/alloc_cpu.cpp: posix_memalign to 64 bytes). Lines of standard input: "BLOCK BYTES" allocates and
// writes each page, "BLOCK 0" frees, "step" ends a step. Prints the pages that each step touched first (getrusage:
// minor faults).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/resource.h>

namespace {

long minorFaults()
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
}

struct Line
{
    std::size_t block = 0;
    long bytes = -1; ///< 0: freed; -1: a step ends
};

std::vector<Line> linesOf(std::FILE* file)
{
    std::vector<Line> lines;
    char text[64];
    while (std::fgets(text, sizeof text, file)) {
        Line line;
        if (text[0] != 's' && std::sscanf(text, "%zu %ld", &line.block, &line.bytes) != 2)
            std::exit(2);
        lines.push_back(line);
    }
    return lines;
}

} // namespace

int main()
{
    const std::vector<Line> lines = linesOf(stdin);
    std::size_t most = 0;
    for (const Line& line : lines)
        most = std::max(most, line.block);
    std::vector<void*> blocks(most + 1);
    long before = minorFaults();
    std::vector<long> steps;
    steps.reserve(lines.size());
    for (const Line& line : lines) {
        if (line.bytes < 0) {
            steps.push_back(minorFaults() - before);
            before = minorFaults();
        } else if (line.bytes == 0) {
            std::free(blocks[line.block]);
        } else {
            if (posix_memalign(&blocks[line.block], 64, std::size_t(line.bytes)) != 0)
                return 1;
            volatile char* const bytes = static_cast<char*>(blocks[line.block]);
            for (long at = 0; at < line.bytes; at += 4096)
                bytes[at] = 1;
            bytes[line.bytes - 1] = 1;
        }
    }
    for (const long step : steps)
        std::printf("%ld\n", step);
}

// SPDX-License-Identifier: Apache-2.0
// cachegrind_loops LOOP|none: runs one loop on real memory and prints where its arrays begin.
// "none" does everything but the loop. Compiled with -O1: each loop stays a function, whose counts are its own;
// accesses are volatile, so each is made exactly as written.
#include "tests/support/cachegrind_loops.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct RealMemory
{
    // The strided loop reads doubles that are not aligned.
    template <typename T> struct __attribute__((packed, may_alias)) Loose
    {
        T value;
    };

    template <typename T> T read(std::uint64_t address, T = {})
    {
        return reinterpret_cast<const volatile Loose<T>*>(address)->value;
    }
    template <typename T> void write(std::uint64_t address, T value)
    {
        reinterpret_cast<volatile Loose<T>*>(address)->value = value;
    }
};

std::uint64_t allocated()
{
    // Never touched here: the pages are zero, and no cache knows them before the loop does.
    void* const memory = std::aligned_alloc(4096, memscape::loops::arrayBytes);
    if (memory == nullptr)
        std::exit(3);
    return reinterpret_cast<std::uint64_t>(memory);
}

} // namespace

int main(int count, char** arguments)
{
    if (count != 2) {
        std::fprintf(stderr, "usage: cachegrind_loops LOOP|none\n");
        return 2;
    }
    const memscape::loops::Arrays at{allocated(), allocated(), allocated()};
    std::printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", at.a, at.b, at.c);
    std::fflush(stdout);
    RealMemory memory;
    bool known = std::strcmp(arguments[1], "none") == 0;
    for (const auto& loop : memscape::loops::all<RealMemory>())
        if (loop.name == arguments[1]) {
            loop.run(memory, at);
            known = true;
        }
    return known ? 0 : 2;
}

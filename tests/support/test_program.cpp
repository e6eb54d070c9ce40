// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_program.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

namespace memscape::test {

namespace {

std::map<std::string, int (*)(int, char**)>& entries()
{
    static std::map<std::string, int (*)(int, char**)> all;
    return all;
}

} // namespace

TestEntry::TestEntry(const char* file, int (*run)(int, char**))
{
    entries()[std::filesystem::path(file).stem().string()] = run;
}

} // namespace memscape::test

int main(int argc, char** argv)
{
    const auto& all = memscape::test::entries();
    const auto entry = argc > 1 ? all.find(argv[1]) : all.end();
    if (entry == all.end()) {
        std::fprintf(stderr, "usage: %s TEST [arguments of Qt Test]; TEST is one of", argv[0]);
        for (const auto& [name, run] : all)
            std::fprintf(stderr, " %s", name.c_str());
        std::fprintf(stderr, "\n");
        return 2;
    }
    argv[1] = argv[0]; // what Qt Test reads begins with the program
    return entry->second(argc - 1, argv + 1);
}

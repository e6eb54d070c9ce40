// SPDX-License-Identifier: Apache-2.0
// A target over files that are there, where there is no libFuzzer: every file of the folders and files that are named.
// The name of each is said before it is read, so that the last one is the one that ended the process.
#include "tests/fuzz/target.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fs = std::filesystem;

int main(int count, char** arguments)
{
    std::vector<fs::path> files;
    for (int i = 1; i < count; ++i) {
        if (!fs::is_directory(arguments[i]))
            files.emplace_back(arguments[i]);
        else
            for (const auto& entry : fs::recursive_directory_iterator(arguments[i]))
                if (entry.is_regular_file())
                    files.push_back(entry.path());
    }
    std::ranges::sort(files);
    for (const fs::path& path : files) {
        std::fprintf(stderr, "%s\n", path.c_str());
        std::ifstream file(path, std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    std::fprintf(stderr, "%zu inputs, no promise broken\n", files.size());
    return files.empty() ? 2 : 0; // an empty corpus checks nothing
}

// SPDX-License-Identifier: Apache-2.0
// Headers of safetensors files, the index that names several, and headers of GGUF files. All are read from files: here
// one without a name.
#include "core/network/safetensors.h"
#include "core/network/gguf.h"
#include "core/network/gguf_model.h"

#include "tests/fuzz/target.h"

#include <sys/mman.h>
#include <unistd.h>

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const int file = memfd_create("fuzz", 0);
    fuzz::promise(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size),
                  "there is memory for a file");
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    fuzz::errorIsClear(readSafetensors(path));
    fuzz::errorIsClear(readSafetensorsIndex(path));
    fuzz::errorIsClear(readGguf(path));
    fuzz::errorIsClear(modelFromGguf(path, UnknownArchitecture::LikeLlama));
    return 0;
}

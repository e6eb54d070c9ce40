// SPDX-License-Identifier: Apache-2.0
#include "core/base/out_of_memory.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include <unistd.h>

namespace memscape {

namespace {

const char* endingProgram = "memscape";
bool hasRunOut = false; // an exception that leaves a destructor while another one flies is not the current one

void say(const char* text)
{
    static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
}

[[noreturn]] void refuse()
{
    hasRunOut = true;
    throw std::bad_alloc();
}

[[noreturn]] void endWithoutMemory()
{
    say(endingProgram);
    say(": out of memory\n");
    ::_exit(outOfMemoryStatus);
}

[[noreturn]] void endWithReason()
{
    if (hasRunOut)
        endWithoutMemory();
    if (const std::exception_ptr problem = std::current_exception()) {
        try {
            std::rethrow_exception(problem);
        } catch (const std::bad_alloc&) {
            endWithoutMemory();
        } catch (...) { }
    }
    std::abort();
}

} // namespace

void endClearlyWithoutMemory(const char* program)
{
    endingProgram = program;
    std::set_new_handler(refuse);
    std::set_terminate(endWithReason);
}

} // namespace memscape

// SPDX-License-Identifier: Apache-2.0
// A function of a library that was opened at run time.
#pragma once

#include <dlfcn.h>

namespace memscape::host {

/// Sets `function`; false where the library has no such name.
template <typename Function> bool findSymbol(void* library, Function& function, const char* name)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

} // namespace memscape::host

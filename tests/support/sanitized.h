// SPDX-License-Identifier: Apache-2.0
// MEMSCAPE_ADDRESS_SANITIZER is defined where the address sanitizer is compiled in.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define MEMSCAPE_ADDRESS_SANITIZER // g++
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMSCAPE_ADDRESS_SANITIZER // clang
#endif
#endif

// SPDX-License-Identifier: Apache-2.0
// A function with a stack of its own that can stop in the middle and go on later, in one thread of
// the system: what thousands of emulated GPU threads are made of. x86-64 switches stacks itself (the
// registers that a call must keep); elsewhere POSIX's swapcontext does, which asks the kernel to save
// the signal mask and takes ten times as long. The address sanitizer is notified of every change, and that
// a stack which is taken up again holds nothing of a body that was given up in the middle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace memscape::emulated {

class Fiber
{
public:
    /// `body` must not return: its last act is leave(). It catches its exceptions.
    explicit Fiber(std::function<void()> body);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Runs the body until it leaves. Called from outside.
    void enter();
    /// Back to the caller. Called by the body.
    void leave();

private:
    static void start();
    void switchInside();
    void switchOutside();

    std::function<void()> m_body;
    std::unique_ptr<char[]> m_stack;
    /// For the address sanitizer: the stack of the caller, and its state of either side.
    const void* m_outsideBottom = nullptr;
    std::size_t m_outsideSize = 0;
    void *m_insideMemory = nullptr, *m_outsideMemory = nullptr;
#if defined(__x86_64__)
    void *m_inside = nullptr, *m_outside = nullptr; ///< stack pointers
#else
    ucontext_t m_inside = {}, m_outside = {};
#endif
};

} // namespace memscape::emulated

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fiber.h"

#include "tests/support/sanitized.h"

#include <vector>

#if defined(MEMSCAPE_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace memscape::emulated {

namespace {

constexpr std::size_t stackBytes = 128 << 10;
thread_local Fiber* starting = nullptr;
/// Stacks of fibers that are gone: a launch makes thousands, and the system would hand out and clear the
/// pages of each.
thread_local std::vector<std::unique_ptr<char[]>> spareStacks;

std::unique_ptr<char[]> stack()
{
    if (spareStacks.empty())
        return std::unique_ptr<char[]>(new char[stackBytes]);
    std::unique_ptr<char[]> taken = std::move(spareStacks.back());
    spareStacks.pop_back();
    return taken;
}

#if defined(MEMSCAPE_ADDRESS_SANITIZER)

void announceSwitch(void** memory, const void* bottom, std::size_t size)
{
    __sanitizer_start_switch_fiber(memory, bottom, size);
}
void finishSwitch(void* memory, const void** bottom, std::size_t* size)
{
    __sanitizer_finish_switch_fiber(memory, bottom, size);
}
/// What went out of scope on it, or would have.
void forgetScopes(const char* stack)
{
    __asan_unpoison_memory_region(stack, stackBytes);
}

#else

void announceSwitch(void**, const void*, std::size_t) { }
void finishSwitch(void*, const void**, std::size_t*) { }
void forgetScopes(const char*) { }

#endif

} // namespace

Fiber::~Fiber()
{
    forgetScopes(m_stack.get());
    spareStacks.push_back(std::move(m_stack));
}

void Fiber::enter()
{
    starting = this;
    announceSwitch(&m_outsideMemory, m_stack.get(), stackBytes);
    switchInside();
    finishSwitch(m_outsideMemory, nullptr, nullptr);
}

void Fiber::leave()
{
    announceSwitch(&m_insideMemory, m_outsideBottom, m_outsideSize);
    switchOutside();
    finishSwitch(m_insideMemory, &m_outsideBottom, &m_outsideSize);
}

#if defined(__x86_64__)

// Pushes what the caller expects to find again, leaves the stack at *from and takes up the one at to.
extern "C" void memscapeSwitchStacks(void** from, void* to);
asm(R"(
.text
.globl memscapeSwitchStacks
.type memscapeSwitchStacks, @function
memscapeSwitchStacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size memscapeSwitchStacks, .-memscapeSwitchStacks
)");

Fiber::Fiber(std::function<void()> body)
    : m_body(std::move(body))
    , m_stack(stack())
{
    // As if start() had been called from nowhere: six registers, then where to return to.
    const auto top = (reinterpret_cast<std::uintptr_t>(m_stack.get()) + stackBytes) & ~std::uintptr_t(15);
    auto* place = reinterpret_cast<std::uintptr_t*>(top) - 2;
    *place = reinterpret_cast<std::uintptr_t>(&Fiber::start);
    for (int i = 0; i < 6; ++i)
        *--place = 0;
    m_inside = place;
}

void Fiber::switchInside()
{
    memscapeSwitchStacks(&m_outside, m_inside);
}

void Fiber::switchOutside()
{
    memscapeSwitchStacks(&m_inside, m_outside);
}

#else

Fiber::Fiber(std::function<void()> body)
    : m_body(std::move(body))
    , m_stack(stack())
{
    getcontext(&m_inside);
    m_inside.uc_stack.ss_sp = m_stack.get();
    m_inside.uc_stack.ss_size = stackBytes;
    makecontext(&m_inside, &Fiber::start, 0);
}

void Fiber::switchInside()
{
    swapcontext(&m_outside, &m_inside);
}

void Fiber::switchOutside()
{
    swapcontext(&m_inside, &m_outside);
}

#endif

void Fiber::start()
{
    Fiber& self = *starting;
    finishSwitch(nullptr, &self.m_outsideBottom, &self.m_outsideSize);
    self.m_body();
}

} // namespace memscape::emulated

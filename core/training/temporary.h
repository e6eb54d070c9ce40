// SPDX-License-Identifier: Apache-2.0
// A tensor that a Python variable or an expression holds: its block is kept as long as the handle,
// and giving the variable a new value frees the old one after the new one exists, as in Python.
// Code of optimizers written with these has the lifetimes of the PyTorch code that it mirrors.
#pragma once

#include "core/trace/trace.h"

#include <utility>

namespace memscape {

class Temporary
{
public:
    Temporary() = default;
    Temporary(Trace& trace, std::int64_t bytes, NameId name, ModuleId module, Category category = Category::Temporary)
        : m_trace(&trace)
        , m_block(trace.allocate(bytes, category, name, module))
    { }
    Temporary(Temporary&& other) noexcept
        : m_trace(other.m_trace)
        , m_block(std::exchange(other.m_block, noBlock))
    { }
    Temporary& operator=(Temporary&& other) noexcept
    {
        const BlockId old = std::exchange(m_block, std::exchange(other.m_block, noBlock));
        if (old != noBlock)
            m_trace->free(old);
        m_trace = other.m_trace;
        return *this;
    }
    ~Temporary() { reset(); }

    /// `del variable`.
    void reset()
    {
        if (m_block != noBlock)
            m_trace->free(std::exchange(m_block, noBlock));
    }
    /// The block goes on living without this handle.
    BlockId release() { return std::exchange(m_block, noBlock); }

private:
    Trace* m_trace = nullptr;
    BlockId m_block = noBlock;
};

} // namespace memscape

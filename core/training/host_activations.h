// SPDX-License-Identifier: Apache-2.0
// Activations in the host's memory: what a model packs before its head is copied to pinned memory, and back when
// backward unpacks it, as torchtune's OffloadActivations does (torchtune/training/_activation_offloading.py, with
// streams; TRL has taken it over).
//
//   forward   a tensor of 1 KiB or more is copied each time that it is packed; the last five packed stay on the device
//             until the next ones are, as their copies may still run
//   backward  a node brings back what it packed; that stays until the next node that unpacks something has run
//
// A compiled layer packs each tensor once, when all of it has run; a checkpointed one packs its inputs alone. What a
// layer runs again stays on the device.
//
// Left out: what the head and the loss keep, which is needed again at once and stays on the device, as it does in
// torchtune; weights, masks and tables, which the model holds anyway.
#pragma once

#include "core/training/live_storages.h"
#include "core/training/segments.h"

#include <deque>
#include <functional>

namespace memscape {

/// Whether a tensor that is packed before the head goes to the host.
bool goesToHost(const Graph& graph, TensorId tensor);

/// B that one micro-batch copies to the host, and as many back; 0 where the plan keeps activations on the device.
std::int64_t hostActivationBytes(const Graph& graph, const CheckpointPlan& plan);

class HostActivations
{
public:
    HostActivations(const Graph& graph, LiveStorages& live);

    bool isBeforeHead(std::uint32_t op) const { return op < m_head; }
    bool hasSent(std::uint32_t key) const { return key < m_isSent.size() && m_isSent[key]; }
    /// What was packed under this key: an index of Graph::operands, or one behind them. The caller's reference ends.
    void send(std::uint32_t key, LiveId packed);
    /// With a reference for the caller; `make` allocates it with one.
    LiveId bringBack(std::uint32_t key, const std::function<LiveId()>& make);
    void ran(); ///< the node that has unpacked something, if it has
    void endBackward();

private:
    static constexpr std::size_t mostStashed = 5;
    struct Stashed
    {
        std::uint32_t key = 0;
        LiveId live = 0;
    };
    void release(std::vector<LiveId>& all);

    LiveStorages& m_live;
    std::uint32_t m_head = 0;           ///< its first operator
    std::vector<std::uint8_t> m_isSent; ///< by key
    std::deque<Stashed> m_stash;
    std::vector<LiveId> m_unpacked, m_unpackedBefore; ///< by the running node; by the one before
    bool m_hasUnpacked = false;
};

} // namespace memscape

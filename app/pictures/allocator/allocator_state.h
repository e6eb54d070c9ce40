// SPDX-License-Identifier: GPL-3.0-or-later
// What the picture of `allocator` shows: the requests and the allocator of a prediction's detail
// (core/experiments/allocator/allocator_detail.cpp), played here to any request, and what other allocators would have
// reserved for the same requests.
#pragma once

#include "core/base/number.h"
#include "core/trace/policy_replay.h"

#include <QString>
#include <QStringList>

#include <map>
#include <memory>
#include <vector>

namespace memscape {

struct Outcome;

/// After one request.
struct AllocatorMoment
{
    int request = -1;
    PolicyAct act;
    std::vector<PolicySegment> segments;
    PolicyCounts counts;
    QStringList words; ///< what it did and why
};

/// Goes to any request. States on the way are kept, so that a step back is as quick as one on.
class AllocatorWalk
{
public:
    AllocatorWalk() = default;
    /// Errors: those of makePolicy().
    static Result<AllocatorWalk> of(std::shared_ptr<const RequestTrace> trace, const PolicySetting& setting);
    bool isEmpty() const { return !m_trace; }
    /// Of requests that can be played: those before memory runs out, and that one.
    const AllocatorMoment& at(int request);

private:
    void go(int request);

    std::shared_ptr<const RequestTrace> m_trace;
    PolicySetting m_setting;
    std::map<int, std::unique_ptr<MemoryPolicy>> m_kept; ///< before that request
    std::unique_ptr<MemoryPolicy> m_policy;              ///< before request m_next
    int m_next = 0;
    AllocatorMoment m_moment;
};

/// The same requests under another allocator.
struct ElsewhereCard
{
    QString key; ///< of the parameter; empty: no setting, a bound
    QString label;
    double reserved = 0, unusable = 0;
    bool isKnown = true, isRefused = false, isChosen = false;
    QString missing;
};

struct AllocatorState
{
    QString title;   ///< "one step of GPT-2 · PyTorch, default"
    QString missing; ///< why there is nothing to draw
    std::shared_ptr<const RequestTrace> trace;
    std::shared_ptr<AllocatorWalk> walk;
    std::vector<ElsewhereCard> cards;
    int peak = 0;     ///< the request that made reserved highest
    int last = -1;    ///< that can be played
    qint64 scale = 1; ///< sizes were divided by it
    ByteStyle byteStyle = ByteStyle::Binary;

    bool empty() const { return !trace || !walk || last < 0; }
    int count() const { return trace ? int(trace->requests.size()) : 0; }
    QString bytes(double value) const;
    QString requestName(int request) const; ///< "allocate 96 MiB · h.3.mlp"
    QString header(int request) const;      ///< "Request 1 204 of 8 370 · …"
    /// Size, owner, category, age and neighbours of a block; of a free one, size and neighbours.
    QString blockWords(const AllocatorMoment& moment, std::size_t segment, std::size_t block) const;
};

/// `walk` is that of an earlier state: it is kept where the requests and the allocator are the same.
AllocatorState readAllocator(const Outcome* predicted, ByteStyle style);

} // namespace memscape

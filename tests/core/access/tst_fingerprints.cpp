// SPDX-License-Identifier: Apache-2.0
// Both forms of the fingerprints against a plain list of sixteen bytes.
#include "core/access/fingerprints.h"
#include "core/access/random.h"

#include <QtTest>

#include <list>

using namespace memscape;

namespace {

/// Few values, so that many are equal.
template <typename Prints> void moveAsAListDoes()
{
    SplitMix64 random(7);
    std::list<std::uint64_t> plain(16, 0);
    Prints prints;
    for (int i = 0; i < 20000; ++i) {
        alignas(16) std::uint64_t words[2];
        prints.store(words);
        prints = Prints::load(words);
        const std::uint64_t print = random.below(4) * 85; // 0, 85, 170, 255
        const unsigned equal = prints.equalTo(print);
        unsigned at = 0, shouldBe = 0;
        for (const std::uint64_t held : plain)
            shouldBe |= unsigned(held == print) << at++;
        // A form may report more, but each equal one, and nothing where nothing is equal.
        QCOMPARE(equal & shouldBe, shouldBe);
        QCOMPARE(equal == 0, shouldBe == 0);
        const unsigned position = unsigned(random.below(17));
        if (position == 16) {
            plain.pop_back();
            plain.push_front(print);
            prints = prints.pushed(print);
        } else {
            const auto moved = std::next(plain.begin(), position);
            const std::uint64_t held = *moved;
            plain.splice(plain.begin(), plain, moved);
            prints = prints.moved(held, position);
        }
        prints.store(words);
        for (int byte = 0; byte < 16; ++byte)
            QCOMPARE(words[byte / 8] >> byte % 8 * 8 & 255, *std::next(plain.begin(), byte));
    }
}

class TestFingerprints : public QObject
{
    Q_OBJECT

private slots:
    void wordsMoveAsAListDoes() { moveAsAListDoes<FingerprintWords>(); }

    void theMachinesFormMovesAsAListDoes() { moveAsAListDoes<Fingerprints>(); }
};

} // namespace

QTEST_GUILESS_MAIN(TestFingerprints)
#include "tst_fingerprints.moc"

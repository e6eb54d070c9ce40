// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/part_colours.h"

#include <algorithm>
#include <array>

namespace memscape {

namespace {

struct Part
{
    std::string_view key;
    QRgb dark, light;
};

constexpr std::array<Part, 13> parts{{{"weights", 0xff0072b2u, 0xff0072b2u},
                                      {"master_weights", 0xff56b4e9u, 0xff7cc4eeu},
                                      {"gradients", 0xff009e73u, 0xff1fae86u},
                                      {"optimizer_state", 0xffcc79a7u, 0xffd68fb6u},
                                      {"activations", 0xffc28500u, 0xffebb546u},
                                      {"temporary", 0xffe3d83eu, 0xfff0e442u},
                                      {"communication", 0xffd55e00u, 0xffe0762bu},
                                      {"key_value_cache", 0xffcc79a7u, 0xffd68fb6u},
                                      {"workspace", 0xff9aa3adu, 0xffaab2bbu},
                                      {"input", 0xffbfc4cau, 0xffd0d5dbu},
                                      {"reserved_unused", 0xff454d57u, 0xffd9dee4u},
                                      {"context", 0xff6b7480u, 0xffa7afb8u},
                                      {"unknown", 0xff808893u, 0xff9aa2abu}}};

} // namespace

int partIndex(std::string_view key)
{
    const auto at = std::ranges::find(parts, key, &Part::key);
    return static_cast<int>(at == parts.end() ? parts.size() - 1 : static_cast<std::size_t>(at - parts.begin()));
}

int partOf(Category category)
{
    std::string key(categoryText(category)); // "optimizer state", as documents call "optimizer_state"
    std::replace_if(
        key.begin(), key.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
    return partIndex(key);
}

QColor partColour(const Theme& theme, int index)
{
    const Part& part = parts[static_cast<std::size_t>(std::clamp(index, 0, static_cast<int>(parts.size()) - 1))];
    return QColor::fromRgb(theme.dark ? part.dark : part.light);
}

QColor textOn(const QColor& colour)
{
    return contrast(colour, Qt::black) >= contrast(colour, Qt::white) ? QColor(Qt::black) : QColor(Qt::white);
}

} // namespace memscape

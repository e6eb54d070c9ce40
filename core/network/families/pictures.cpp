// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/pictures.h"

#include "core/network/families/vision_towers.h"

namespace memscape {

Variable withPictures(NetworkBuilder& b, const ModelDescription& model, const Variable& tokens, Variable words)
{
    const VisionTower& tower = model.vision;
    const std::int64_t count = tower.tokens(), batch = b.options().batch;
    if (!b.options().gradient && b.options().sequence < count)
        return words; // a token behind the prompt, or a prompt of words alone
    b.refuseBelow(count, "tokens of its picture");
    Variable x = tower.kind == VisionTower::Kind::Clip ? clipTokens(b, model) : qwenTokens(b, model);
    x = b.ok() ? b.reshape(b.clone(std::move(x)), {batch * count, model.hidden}) : Variable(); // a list, then cat
    const Variable places = b.unsqueeze(b.equalsNumber(tokens), 2);
    words = b.maskedFill(std::move(words), places); // masked_scatter: a copy, into which the pictures are written
    const Layout layout = b.ok() ? words.layout() : Layout();
    return b.other({words, x}, layout, words.dtype(), {}, true);
}

} // namespace memscape

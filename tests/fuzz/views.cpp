// SPDX-License-Identifier: Apache-2.0
// Shapes and operations in PyTorch's words: the shape on the first line, the operations on the others.
#include "core/access/views/view_operation.h"
#include "core/access/views/view_step.h"
#include "tests/fuzz/target.h"

using namespace memscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text = fuzz::text(data, size);
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto shape = parseShape(text.substr(0, end));
    const auto operations = parseViews(text.substr(std::min(end + 1, text.size())));
    fuzz::errorIsClear(shape);
    fuzz::errorIsClear(operations);
    if (!shape || !operations)
        return 0;
    const auto tensor = freshTensor(*shape);
    fuzz::errorIsClear(tensor);
    if (!tensor)
        return 0;
    const auto steps = applyAll(*tensor, *operations);
    fuzz::errorIsClear(steps);
    if (steps)
        fuzz::promise(steps->size() == operations->size(), "every operation has its answer");
    return 0;
}

#pragma once

#include <string_view>

namespace dockbridge {

/// Whether objects and arrays in the text lie within each other more than `levels` deep, up to the first place where it
/// is not JSON. To be asked before the text is parsed, as a parser recurses, or allocates, with every level.
bool nests_deeper_than(std::string_view json, int levels);

}  // namespace dockbridge

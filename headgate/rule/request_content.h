// The descriptors, costs and limits of a request as text: equal texts, equal requests. A client's
// id is bound to this text, so that an id that passed once never lets another request pass.
#pragma once

#include <span>
#include <string>

#include "headgate/rule/descriptor.h"

namespace headgate::rule {

// Appends descriptors, costs and limits. A descriptor without a cost counts as one of cost 1.
void AppendRequestContent(std::span<const Descriptor> descriptors, std::string& out);

}  // namespace headgate::rule

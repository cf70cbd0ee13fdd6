// The source directory that the tests were built from.
#pragma once

#include <filesystem>

namespace headgate {

std::filesystem::path SourceDir();

}  // namespace headgate

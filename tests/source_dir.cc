// The only file compiled with the path, so that ccache serves the objects of one checkout to
// another.
#include "tests/source_dir.h"

namespace headgate {

std::filesystem::path SourceDir() { return HEADGATE_SOURCE_DIR; }

}  // namespace headgate

// The only file compiled with the path, so that checkouts can share the objects in ccache.
#include "tests/source_dir.h"

namespace headgate {

std::filesystem::path SourceDir() { return HEADGATE_SOURCE_DIR; }

}  // namespace headgate

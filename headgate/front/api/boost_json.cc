// Compiles the sources of Boost.JSON once for the whole program. Only its one-pass parser is used.
#include <boost/json/src.hpp>

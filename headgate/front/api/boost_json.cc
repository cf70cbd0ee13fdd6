// Boost.JSON's sources, of which the one-pass parser is used: once in the program.
#include <boost/json/src.hpp>

// Registrations only: what JavaScript can call. Conversions live elsewhere.
#include <emscripten/bind.h>

#include <string>

namespace {

std::string version() { return KVLENS_VERSION; }

}  // namespace

EMSCRIPTEN_BINDINGS(kvlens) { emscripten::function("version()", &version); }

#!/bin/sh
# Makes the private Emscripten, if find.sh finds none. Safe to interrupt (what is unfinished has
# another name and is made anew) and to run twice at once (the second waits for the first).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

if "$here/find.sh" >/dev/null; then exit; fi
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
  echo "Emscripten is missing: install emcc 4.0 or newer (emsdk, https://emscripten.org) and put it" \
    "on PATH or set EMSDK, or run \`npm run setup\` once as root on Debian, which makes a private one." >&2
  exit 1
fi

mkdir -p "$kvlens_cache"
exec 9>"$kvlens_root.lock"
flock 9
if [ -e "$kvlens_root/.ready" ]; then exit; fi

partial=$kvlens_root.partial
log=$kvlens_root.log
rm -rf --one-file-system "$partial"
echo "Emscripten: making a private copy in $kvlens_root (about 3 minutes and 1.3 GB, once)"
# debootstrap mounts /proc in the new tree: in a namespace of its own that goes away with it.
unshare --mount --propagation private \
  debootstrap --variant=minbase --include=emscripten testing "$partial" >"$log" 2>&1 ||
  { tail -n 20 "$log" >&2; exit 1; }
rm -f "$partial"/var/cache/apt/archives/*.deb

# Emscripten compiles its system libraries when they are first linked: here rather than in a build.
cat >"$partial/opt/warm-up.cc" <<'CC'
#include <emscripten/bind.h>
#include <iostream>
int main() { std::cout << "warm" << std::endl; }
CC
cd /tmp
for flags in '' '-O3' '-O3 -pthread' '-g -O1'; do
  # shellcheck disable=SC2086 # the flags are several words
  (enter "$partial" /tmp em++ $flags -lembind /opt/warm-up.cc -o /opt/warm-up.mjs) >>"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; exit 1; }
done

touch "$partial/.ready"
mv "$partial" "$kvlens_root"

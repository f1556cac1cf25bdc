#!/bin/sh
# Prints the folder whose emcc and em++ to use; fails if there is none yet. A developer's own
# Emscripten (PATH, then $EMSDK) comes before the private one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
for emcc in "$(command -v emcc || true)" "${EMSDK:+$EMSDK/upstream/emscripten/emcc}"; do
  [ -x "$emcc" ] || continue
  major=$("$emcc" --version 2>/dev/null | sed -n '1s/.* \([0-9][0-9]*\)\.[0-9][0-9]*\.[0-9].*/\1/p')
  if [ "${major:-0}" -ge 4 ]; then
    dirname "$emcc"
    exit
  fi
done
[ -e "$kvlens_root/.ready" ] && echo "$here/bin"

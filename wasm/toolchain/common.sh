# Sourced by the scripts beside it: where the private Emscripten is, and how to run a command in it.
#
# It is a small Debian tree of its own, since Debian's stable releases carry an Emscripten that is too
# old, and mixing a newer one into the host would replace the host's libraries. The name ends in the
# version of the recipe: a changed recipe makes a new tree and never meets an old one.
kvlens_cache=${KVLENS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvlens}
kvlens_root=$kvlens_cache/emscripten-1

# enter ROOT PROJECT COMMAND [ARGUMENT...]: COMMAND in ROOT, at the same working directory, seeing of
# the host only PROJECT, /tmp and that directory. Replaces the calling shell.
enter() {
  root=$1 project=$2
  shift 2
  set -- env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 "$@"
  # Bubblewrap cleans up whatever happens; but containers may deny what it needs.
  set -- --dev /dev --proc /proc --bind /tmp /tmp --bind "$project" "$project" \
    --bind "$PWD" "$PWD" --chdir "$PWD" --die-with-parent "$@"
  if bwrap --bind "$root" / --dev /dev --proc /proc true 2>/dev/null; then
    exec bwrap --bind "$root" / "$@"
  fi
  while [ "$1" != env ]; do shift; done
  # The mounts belong to a namespace that ends with the command, so none can be left behind.
  exec unshare --mount --propagation private sh -ec '
    root=$1 project=$2
    shift 2
    mkdir -p "$root$project" "$root$PWD"
    for folder in /dev /tmp "$project" "$PWD"; do mount --rbind "$folder" "$root$folder"; done
    mount -t proc proc "$root/proc"
    exec chroot "$root" sh -c "cd \"\$1\" && shift && exec \"\$@\"" enter "$PWD" "$@"
  ' enter "$root" "$project" "$@"
}

# Shared by the launchers beside this file, which set `root` (the package's folder) and source it.
# POSIX sh; one `exec`, so the program keeps the launcher's process id, signals and exit code.

# Node.js 24 is the first that runs the TypeScript of a checkout as it is, and the oldest that is tested.
minimum=24

# recent NODE: is it a Node.js of at least $minimum?
recent() {
  version=$("$1" --version 2>/dev/null) || return 1
  major=${version#v}
  major=${major%%.*}
  [ "$major" -ge "$minimum" ] 2>/dev/null
}

# Sets `node`: the pinned one of a checkout, the one npm hoisted beside an installed package, else the one on PATH.
find_node() {
  node=$root/node_modules/node/bin/node
  [ -x "$node" ] && return
  case $root in
    */node_modules/*)
      node=${root%/*}/node/bin/node
      [ -x "$node" ] && recent "$node" && return
      ;;
  esac
  if node=$(command -v node); then
    recent "$node" && return
    found="found $version at $node"
  else
    found="found none on PATH"
  fi
  echo "${0##*/}: Node.js $minimum or newer is needed; $found." >&2
  if [ -d "$root/src" ]; then
    echo "Run \"npm ci\" in $root: it installs the right one beside the sources." >&2
  else
    echo "Install Node.js $minimum, or put it first on PATH." >&2
  fi
  exit 1
}

# SIGUSR1, by which other servers reopen their logs, would open Node.js's debugger, by which every user of the machine could take over.
# So it does nothing.
# By default, Node.js trusts only the CAs that come with it, not those that operators have added to the system. The first TLS client
# that needs them reads them, which costs up to 100 ms of CPU, once.
flags="--disable-sigusr1 --use-system-ca"

# launch MODULE ARGUMENT...: MODULE is a path below src/ (checkout) or dist/ (installed package), without extension. A checkout
# keeps compiled code between starts; the package was built with it, and Node.js gets `package_flags`.
launch() {
  entry=$root/src/$1.ts
  bundle=$root/dist/$1.cjs
  if [ -f "$entry" ]; then
    shift
    find_node
    # shellcheck disable=SC2086 # flags are words
    exec "$node" $flags --require "$root/src/base/compile-cache.ts" "$entry" "$@"
  fi
  if [ ! -f "$bundle" ]; then
    echo "${0##*/}: $root has neither src/$1.ts nor dist/$1.cjs; reinstall the package, or run \"npm run build\"." >&2
    exit 1
  fi
  shift
  find_node
  # shellcheck disable=SC2086 # flags are words
  exec "$node" $flags $package_flags "$bundle" "$@"
}

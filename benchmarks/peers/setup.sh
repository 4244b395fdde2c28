#!/usr/bin/env bash
# Creates one virtualenv per peer: setup.sh VENV_DIR [PEER...]
set -euo pipefail

if [ $# -lt 1 ]; then
  echo "usage: $0 VENV_DIR [rllib|sb3|sample_factory|rejax|purejaxrl ...]" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
venvs=$1
shift
if [ $# -eq 0 ]; then
  set -- rllib sb3 sample_factory rejax purejaxrl
fi

for peer in "$@"; do
  requirements="$here/requirements-$peer.txt"
  if [ ! -f "$requirements" ]; then
    echo "unknown peer '$peer': there is no $requirements" >&2
    exit 2
  fi
  "${PYTHON:-python3.11}" -m venv "$venvs/$peer"
  # torch on its own and first: a range resolved later could replace the CPU build.
  if torch=$(grep '^torch==' "$requirements"); then
    "$venvs/$peer/bin/pip" install --quiet "$torch"
  fi
  "$venvs/$peer/bin/pip" install --quiet -r "$requirements"
  echo "$peer: $venvs/$peer"
done

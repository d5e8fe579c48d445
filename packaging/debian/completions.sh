#!/bin/sh
# completions.sh FROM TO -- what is in FROM, if there is one, to where bash and zsh look for it
set -eu
[ -d "$1" ] || exit 0
for f in "$1"/*; do
	case ${f##*/} in
	_lodge | *.zsh) install -D -m 644 "$f" "$2/usr/share/zsh/vendor-completions/_lodge" ;;
	lodge | *.bash) install -D -m 644 "$f" "$2/usr/share/bash-completion/completions/lodge" ;;
	*) echo "completions.sh: $f: for which shell?" >&2; exit 1 ;;
	esac
done

# bash completion of tgctl; load it with: . <(tgctl completion bash)
_tgctl() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path="" word
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      --) return ;;
      -*) ;;
      *) case " $(_tgctl_words "$path" subcommands) " in *" $word "*) path="$path $word" ;; esac ;;
    esac
  done
  case $previous in
    -*)
      local values
      values=$(_tgctl_values "$path" "$previous")
      case $values in
        file) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
        any) return ;;
        ?*) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current"); return ;;
      esac
      ;;
  esac
  case $current in
    -*) mapfile -t COMPREPLY < <(compgen -W "$(_tgctl_words "$path" options)" -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$(_tgctl_words "$path" words)" -- "$current") ;;
  esac
}

# _tgctl_words PATH KIND: what can follow; "words" is what is offered, "subcommands" what may extend the path.
_tgctl_words() {
  case "$1/$2" in
    "/words") echo "proxy version completion" ;;
    "/subcommands") echo "proxy version completion" ;;
    " proxy/words") echo "trace config log profile" ;;
    " proxy/subcommands") echo "trace config log profile c cfg" ;;
    " proxy trace/options") echo "--local --proxy-admin-port --file --raw --port --expression --reveal --json --help" ;;
    " proxy config/words") echo "all backends" ;;
    " proxy config/subcommands") echo "all backends b be" ;;
    " proxy config all/options") echo "--local --proxy-admin-port --file --output --json --help" ;;
    " proxy config backends/options") echo "--local --proxy-admin-port --file --output --all --json --help" ;;
    " proxy config b/options") echo "--local --proxy-admin-port --file --output --all --json --help" ;;
    " proxy config be/options") echo "--local --proxy-admin-port --file --output --all --json --help" ;;
    " proxy c/words") echo "all backends" ;;
    " proxy c/subcommands") echo "all backends b be" ;;
    " proxy c all/options") echo "--local --proxy-admin-port --file --output --json --help" ;;
    " proxy c backends/options") echo "--local --proxy-admin-port --file --output --all --json --help" ;;
    " proxy c b/options") echo "--local --proxy-admin-port --file --output --all --json --help" ;;
    " proxy c be/options") echo "--local --proxy-admin-port --file --output --all --json --help" ;;
    " proxy cfg/words") echo "all backends" ;;
    " proxy cfg/subcommands") echo "all backends b be" ;;
    " proxy cfg all/options") echo "--local --proxy-admin-port --file --output --json --help" ;;
    " proxy cfg backends/options") echo "--local --proxy-admin-port --file --output --all --json --help" ;;
    " proxy cfg b/options") echo "--local --proxy-admin-port --file --output --all --json --help" ;;
    " proxy cfg be/options") echo "--local --proxy-admin-port --file --output --all --json --help" ;;
    " proxy log/options") echo "--local --proxy-admin-port --level --set --json --help" ;;
    " proxy profile/words") echo "cpu heap" ;;
    " proxy profile/subcommands") echo "cpu heap" ;;
    " proxy profile/options") echo "--local --proxy-admin-port --output --seconds --json --help" ;;
    " proxy profile cpu/options") echo "--local --proxy-admin-port --output --seconds --json --help" ;;
    " proxy profile heap/options") echo "--local --proxy-admin-port --output --json --help" ;;
    " version/options") echo "--json --help" ;;
    " completion/words") echo "bash zsh fish" ;;
    " completion/options") echo "--json --help" ;;
  esac
}

# _tgctl_values PATH OPTION: the values of an option, "file" or "any"; nothing for a switch.
_tgctl_values() {
  case "$1/$2" in
    " proxy trace/--proxy-admin-port") echo "any" ;;
    " proxy trace/--file" | " proxy trace/-f") echo "file" ;;
    " proxy trace/--port") echo "any" ;;
    " proxy trace/--expression") echo "any" ;;
    " proxy config all/--proxy-admin-port") echo "any" ;;
    " proxy config all/--file" | " proxy config all/-f") echo "file" ;;
    " proxy config all/--output" | " proxy config all/-o") echo "table json yaml short" ;;
    " proxy config backends/--proxy-admin-port") echo "any" ;;
    " proxy config backends/--file" | " proxy config backends/-f") echo "file" ;;
    " proxy config backends/--output" | " proxy config backends/-o") echo "table json yaml short" ;;
    " proxy config b/--proxy-admin-port") echo "any" ;;
    " proxy config b/--file" | " proxy config b/-f") echo "file" ;;
    " proxy config b/--output" | " proxy config b/-o") echo "table json yaml short" ;;
    " proxy config be/--proxy-admin-port") echo "any" ;;
    " proxy config be/--file" | " proxy config be/-f") echo "file" ;;
    " proxy config be/--output" | " proxy config be/-o") echo "table json yaml short" ;;
    " proxy c all/--proxy-admin-port") echo "any" ;;
    " proxy c all/--file" | " proxy c all/-f") echo "file" ;;
    " proxy c all/--output" | " proxy c all/-o") echo "table json yaml short" ;;
    " proxy c backends/--proxy-admin-port") echo "any" ;;
    " proxy c backends/--file" | " proxy c backends/-f") echo "file" ;;
    " proxy c backends/--output" | " proxy c backends/-o") echo "table json yaml short" ;;
    " proxy c b/--proxy-admin-port") echo "any" ;;
    " proxy c b/--file" | " proxy c b/-f") echo "file" ;;
    " proxy c b/--output" | " proxy c b/-o") echo "table json yaml short" ;;
    " proxy c be/--proxy-admin-port") echo "any" ;;
    " proxy c be/--file" | " proxy c be/-f") echo "file" ;;
    " proxy c be/--output" | " proxy c be/-o") echo "table json yaml short" ;;
    " proxy cfg all/--proxy-admin-port") echo "any" ;;
    " proxy cfg all/--file" | " proxy cfg all/-f") echo "file" ;;
    " proxy cfg all/--output" | " proxy cfg all/-o") echo "table json yaml short" ;;
    " proxy cfg backends/--proxy-admin-port") echo "any" ;;
    " proxy cfg backends/--file" | " proxy cfg backends/-f") echo "file" ;;
    " proxy cfg backends/--output" | " proxy cfg backends/-o") echo "table json yaml short" ;;
    " proxy cfg b/--proxy-admin-port") echo "any" ;;
    " proxy cfg b/--file" | " proxy cfg b/-f") echo "file" ;;
    " proxy cfg b/--output" | " proxy cfg b/-o") echo "table json yaml short" ;;
    " proxy cfg be/--proxy-admin-port") echo "any" ;;
    " proxy cfg be/--file" | " proxy cfg be/-f") echo "file" ;;
    " proxy cfg be/--output" | " proxy cfg be/-o") echo "table json yaml short" ;;
    " proxy log/--proxy-admin-port") echo "any" ;;
    " proxy log/--level") echo "error warn info debug trace off" ;;
    " proxy log/--set") echo "any" ;;
    " proxy profile/--proxy-admin-port") echo "any" ;;
    " proxy profile/--output" | " proxy profile/-o") echo "file" ;;
    " proxy profile/--seconds") echo "any" ;;
    " proxy profile cpu/--proxy-admin-port") echo "any" ;;
    " proxy profile cpu/--output" | " proxy profile cpu/-o") echo "file" ;;
    " proxy profile cpu/--seconds") echo "any" ;;
    " proxy profile heap/--proxy-admin-port") echo "any" ;;
    " proxy profile heap/--output" | " proxy profile heap/-o") echo "file" ;;
  esac
}

complete -F _tgctl tgctl

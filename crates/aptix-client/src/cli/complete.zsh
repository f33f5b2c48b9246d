
# A file of $fpath is the function itself, which the first Tab calls.
if [[ $funcstack[1] == _aptix ]]; then
    _clap_dynamic_completer_aptix "$@"
fi

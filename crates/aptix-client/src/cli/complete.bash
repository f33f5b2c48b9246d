# What can follow on a command line of aptix; the program is asked at each Tab.
_aptix() {
    # The words as the shell reads them: readline has broken them at = and :, which are in options and in URLs.
    local line=${COMP_LINE:0:COMP_POINT} words=() part
    for part in "${COMP_WORDS[@]:0:COMP_CWORD}"; do
        if [[ ${#words[@]} -eq 0 || $line == [[:blank:]]* ]]; then
            words+=('')
            line=${line#"${line%%[![:blank:]]*}"}
        fi
        words[-1]+=$part
        line=${line#"$part"}
    done
    if [[ $line == [[:blank:]]* ]]; then
        words+=('')
        line=${line#"${line%%[![:blank:]]*}"}
    fi
    words[-1]+=$line
    # Only what follows the last = or : is replaced.
    local kept=${words[-1]%"$2"} offered
    COMPREPLY=()
    while IFS= read -r -d $'\v' offered || [[ -n $offered ]]; do
        # A file may have any name: none is to be more than a word.
        printf -v offered %q "${offered#"$kept"}"
        COMPREPLY+=("$offered")
    done < <(_CLAP_IFS=$'\v' _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) APTIX_COMPLETE=bash aptix -- "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=:] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o nosort -F _aptix aptix

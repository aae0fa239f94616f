#!/usr/bin/env bash
# A file of src/<layer> includes only its own folder and those below it, a
# system header, or the public header; report and recover do not know each
# other; the command never stands on the shim; file names are unique.
#
#   check-layers.sh
set -u
cd "$(dirname "$0")/.." || exit 1

# Folders whose headers a layer may include.
allowed() {
    case $1 in
    base) echo base ;;
    cuda) echo base cuda ;;
    track) echo base cuda track ;;
    observe) echo base cuda track observe ;;
    diagnose) echo base cuda track observe diagnose ;;
    report) echo base cuda track observe diagnose report ;;
    recover) echo base cuda track observe diagnose recover ;;
    shim) echo base cuda track observe diagnose report recover shim ;;
    cli) echo base cuda track observe diagnose report cli ;;
    esac
}

wrong=0
complain() {
    echo "check-layers: $*" >&2
    wrong=1
}

for file in src/*/*.[chS] src/*/*.def src/*/*.in; do
    [ -e "$file" ] || continue
    layer=${file#src/}
    layer=${layer%%/*}
    may=" $(allowed "$layer") "
    [ "$may" != "  " ] || complain "$file: src/$layer is no layer"
    while read -r included; do
        case $included in
        ../../include/gpuoomshim.h | gpuoomshim.h) continue ;;
        ../*/*)
            folder=${included#../}
            folder=${folder%%/*}
            case $may in *" $folder "*) ;; *) complain "$file includes \"$included\"" ;; esac
            [ -e "src/$layer/$included" ] || complain "$file: no \"$included\""
            ;;
        */*) complain "$file includes \"$included\", which is not relative to it" ;;
        *) [ -e "src/$layer/$included" ] || complain "$file: no \"$included\" in its folder" ;;
        esac
    done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file")
done

# A layer's list names all of its sources, and nothing else.
for list in src/*/layer.mk; do
    [ -e "$list" ] || continue
    folder=$(dirname "$list")
    for source in "$folder"/*.c; do
        grep -qw -- "$(basename "$source")" "$list" || complain "$source is not in $list"
    done
done

twice=$(find src tests/sim -name '*.[ch]' -printf '%f\n' | sort | uniq -d | tr "\n" " ")
[ -z "$twice" ] || complain "file names that are not unique: $twice"

[ $wrong -eq 0 ] && echo "check-layers: ok"
exit $wrong

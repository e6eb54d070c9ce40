#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which folder may include which, checked by grep. Usage: boundaries.sh SOURCE_FOLDER [MEMSCAPE_CLI]
cd "$1" || exit 2
cli=$2
failed=0

# complain RULE LINES: prints the lines that break a rule, if any.
complain() {
    [ -z "$2" ] && return
    printf 'broken: %s\n%s\n' "$1" "$2"
    failed=1
}
sources() {
    find "$@" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \)
}
grep_in() {
    pattern=$1
    shift
    sources "$@" | xargs grep -nE "$pattern"
}

[ "$(sources core kernels app | wc -l)" -gt 50 ] || { echo "there are no sources in $1"; exit 2; }

complain 'no Qt in core, kernels and app/cli' \
    "$(grep_in '#include *[<"]([Qq][A-Za-z]|Qt)' core kernels app/cli | grep -v '<queue>')"
complain 'CUDA headers only in kernels/cuda' \
    "$(grep_in '#include *[<"](cuda|cublas|cudnn|curand|nvml|device_launch)' core kernels app |
       grep -v '^kernels/cuda/')"
complain 'qcustomplot.h only in app/plots (it costs nine seconds a file)' \
    "$(grep_in '#include *[<"]qcustomplot' core kernels app tests | grep -v '^app/plots/')"
complain 'core includes neither kernels nor app' \
    "$(grep_in '#include *"(kernels|app)/' core)"
complain 'core/base includes nothing, core/precision and core/expression core/base alone' \
    "$(grep_in '#include *"' core/base core/precision core/expression | grep -vE '"core/base/' |
       grep -vE '^core/(precision|expression)/.*"core/\1/')"
complain 'core/claims knows no experiment, and what it is made of knows no claims' \
    "$(grep_in '#include *"core/experiments/' core/claims; grep_in '#include *"core/claims/' core |
       grep -vE '^core/(claims|experiments|published|report)/')"
complain 'kernels/measure knows neither programs nor machines' \
    "$(grep_in '#include *"kernels/(programs|host|cuda|worker)/' kernels/measure)"
complain 'programs know no machine' "$(grep_in '#include *"kernels/(host|cuda|worker)/' kernels/programs)"
complain 'kernels do not include app' "$(grep_in '#include *"app/' kernels)"
complain 'the command line includes nothing of the window' \
    "$(grep_in '#include *"app/' app/cli | grep -v '"app/cli/')"
complain 'numbers are read and written without the locale (core/base/number.h)' \
    "$(grep_in '(std::sto[dfil]|strto[dfl]|atof|atoi|setlocale|[^sf]printf)\(' core app/cli)"
complain 'an SPDX line on top of every source' \
    "$(sources core kernels app tests | xargs grep -L 'SPDX-License-Identifier')"
complain 'core, kernels and app/cli are Apache-2.0' \
    "$(sources core kernels app/cli | xargs grep -L 'SPDX-License-Identifier: Apache-2.0')"
complain 'the window is GPL-3.0-or-later' \
    "$(sources app | grep -v '^app/cli/' | xargs -r grep -L 'SPDX-License-Identifier: GPL-3.0-or-later')"
complain 'files of at most 600 lines' \
    "$(sources core kernels app | xargs wc -l | awk '$1 > 600 && $2 != "total"')"
if [ -n "$cli" ]; then
    complain 'memscape-cli links neither Qt nor CUDA' \
        "$(ldd "$cli" | grep -E 'libQt|libcuda|libcublas|libGL|libX11')"
fi
exit $failed

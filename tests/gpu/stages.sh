# SPDX-License-Identifier: Apache-2.0
# What tests/gpu/run is made of, sourced by it: where the programs are, what the machine is, and how a step is run. A
# step has a name, an estimate and a command. It runs under a time limit of three times its estimate, or of what the
# budget leaves; its line in steps/ says how it went, written when it has ended, so that what was interrupted runs again.

archive_limit=${MEMSCAPE_ARCHIVE_LIMIT:-16777216} # bytes
finishing=12 # s of the budget that are kept for the last step's end and the archive
archive_every=${MEMSCAPE_ARCHIVE_EVERY:-20} # s: what a run loses at most when its machine is taken away

say() { printf '%s\n' "$*" | tee -a "$work/summary.txt"; }
stop() { printf 'tests/gpu/run: %s\n' "$2" >&2; exit "$1"; }
needs() { [ -n "${2:-}" ] || stop 2 "$1 needs a value (see --help)"; }

arguments() {
    stage='' budget=540 dry=0 bundle=${MEMSCAPE_BUNDLE:-} work=$root/build/gpu from='' only='' retry=0 small=0 headers=${MEMSCAPE_HEADERS:-}
    while [ $# -gt 0 ]; do
        case $1 in
        --dry-run) dry=1 ;;
        --retry) retry=1 ;;
        --small) small=1 ;;
        --stage) needs "$@"; stage=$2; shift ;;
        --budget) needs "$@"; budget=$2; shift ;;
        --bundle) needs "$@"; bundle=$2; shift ;;
        --headers) needs "$@"; headers=$2; shift ;;
        --work) needs "$@"; work=$2; shift ;;
        --from) needs "$@"; from=$2; shift ;;
        --only) needs "$@"; only=$2; shift ;;
        --help | -h) usage; exit 0 ;;
        *) stop 2 "unknown argument: $1 (see --help)" ;;
        esac
        shift
    done
    [[ $stage =~ ^[ABCD]$ ]] || stop 2 "which stage? --stage A, B, C or D (see --help)"
    [[ $budget =~ ^[1-9][0-9]*$ ]] || stop 2 "--budget takes whole seconds, not \"$budget\""
}

# ---- the folders --------------------------------------------------------------------------------------------------

folders() {
    mkdir -p "$work" || stop 2 "the folder $work cannot be made"
    work=$(cd "$work" && pwd) # absolute: steps run anywhere
    if [ -n "$from" ]; then
        tar -xzf "$from" -C "$work" || stop 2 "$from cannot be unpacked"
    fi
    mkdir -p "$work"/{records,compare,logs,steps,data} "${OUT:=$work}" || stop 2 "no folder $OUT"
    OUT=$(cd "$OUT" && pwd)
    export XDG_DATA_HOME=$work/data # where a calibration is kept, and found by the steps after it
}

# One archive of all that there is, in place of the one before; the sums say later whether it is whole. When it is too
# large for the machines that hand back files of 16 MiB, less goes in: no logs and no report; then this stage alone;
# then as many of its records as fit, in the order of the steps. What stays behind stays in the work folder.
archive() {
    while pack || { say "THE ARCHIVE COULD NOT BE WRITTEN"; return; }; do
        [ "$(stat -c %s "$OUT/results.part")" -gt "$archive_limit" ] && [ "$thinned" -lt 3 ] || break
        thinned=$((thinned + 1))
        say "the archive would be larger than $archive_limit bytes: from here on $(what_is_left)"
    done
    mv "$OUT/results.part" "$OUT/results.tar.gz"
    archived=$SECONDS
    [ "$OUT" = "$work" ] || cp "$work/summary.txt" "$OUT/summary.txt"
}

what_is_left() {
    case $thinned in
    1) echo 'without logs and report' ;;
    2) echo "stage $stage alone" ;;
    *) echo "stage $stage alone, with the records that fit" ;;
    esac
}

# Names of the files that go in.
packed_files() {
    find machine.txt summary.txt compare data -type f
    [ "$thinned" -ge 1 ] || find logs report.html -type f
    local file name room=$((archive_limit * 9 / 10 - 100000))
    for file in $(ls -tr steps); do # none of the names has a space
        [ "$thinned" -lt 2 ] || [ "$(cut -f1 "steps/$file")" = "$stage" ] || continue
        echo "steps/$file"
        name=records/$file.json
        [ -f "$name" ] || continue
        if [ "$thinned" -ge 3 ]; then
            room=$((room - $(gzip -3 -c "$name" | wc -c)))
            [ $room -gt 0 ] || continue
        fi
        echo "$name"
    done
    return 0
}

# Into results.part, with the sum of every file.
pack() (
    cd "$work" && packed_files 2>/dev/null | grep -v '\.part$' | LC_ALL=C sort | xargs -d '\n' sha256sum >MANIFEST.sha256 &&
        tar -cf - MANIFEST.sha256 -T <(cut -c67- MANIFEST.sha256) | gzip -3 >"$OUT/results.part"
)

# ---- the programs -------------------------------------------------------------------------------------------------

# usable FOLDER: a bundle there starts here, and was made for this GPU. Says why not.
usable() {
    [ -x "$1/bin/memscape-cli" ] || return 1
    local wrong capability
    wrong=$("$1/bin/memscape-cli" list 2>&1 >/dev/null) || { say "the bundle $1 does not start here: $wrong"; return 1; }
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '. ')
    if [ -n "$capability" ] && [ -r "$1/BUNDLE" ] && ! grep -qE "^architectures .*\b$capability" "$1/BUNDLE"; then
        say "the bundle $1 is not made for compute capability $capability"
        return 1
    fi
}

programs() {
    local folder
    for folder in "$bundle" "$root" "$root/build/gpu-bundle"; do
        if [ -n "$folder" ] && usable "$folder"; then
            folder=$(cd "$folder" && pwd)
            cli=$folder/bin/memscape-cli
            export MEMSCAPE_RESOURCES=$folder/share/memscape
            version=$(sed -n 's/^commit //p' "$folder/BUNDLE" 2>/dev/null)
            say "programs of the bundle $folder${version:+, made of $version}"
            return
        fi
        [ -z "$headers" ] && [ -n "$folder" ] && [ -d "$folder/headers" ] && headers=$folder/headers
    done
    build
}

build() {
    [ -e "$root/CMakeLists.txt" ] || stop 2 "no bundle starts here, and there are no sources beside this script to build"
    local nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)} generator=() build=$root/build/gpu-run
    [ -x "$nvcc" ] || stop 2 "no bundle starts here and there is no nvcc: make one with tests/gpu/bundle, or set CUDACXX"
    command -v ninja >/dev/null && generator=(-G Ninja)
    say "building in $build"
    if ! { CUDACXX=$nvcc timeout $((budget - SECONDS)) cmake -S "$root" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
            -DMEMSCAPE_CUDA=ON -DMEMSCAPE_DESKTOP=OFF -DBUILD_TESTING=OFF -DMEMSCAPE_CUDA_ARCHITECTURES=native -DMEMSCAPE_HEADERS="$headers" &&
            timeout $((budget - SECONDS)) cmake --build "$build" --parallel --target memscape-cli memscape_cuda; } >"$work/logs/build.txt" 2>&1; then
        tail -20 "$work/logs/build.txt" >&2
        archive
        stop 2 "the build failed: $work/logs/build.txt"
    fi
    say "built in $SECONDS s"
    cli=$build/bin/memscape-cli
    export MEMSCAPE_RESOURCES=$root/resources
    version=$(git -C "$root" describe --always --dirty 2>/dev/null)
}

# ---- the machine --------------------------------------------------------------------------------------------------

facts() {
    echo "kernel   $(uname -srm), $(nproc) cores"
    echo "glibc    $(ldd --version 2>/dev/null | head -1)"
    echo "g++      $(g++ --version 2>/dev/null | head -1)"
    echo "nvcc     $(nvcc --version 2>/dev/null | tail -2 | head -1)"
    echo "python   $(python3 --version 2>&1)"
    local package
    for package in torch transformers; do
        echo "$package $(python3 -c "import importlib.metadata as m; print(m.version('$package'))" 2>/dev/null || echo 'is not here')"
    done
    echo "cuBLASLt of PyTorch: $(python3 "$scripts/cublaslt.py" 2>&1 | tail -1)"
    { ldconfig -p 2>/dev/null | grep libcublasLt; ls -d /usr/local/cuda/lib64/libcublasLt.so* 2>/dev/null; } | sed 's/^[ \t]*/cuBLASLt /'
    echo "GPU      $(nvidia-smi --query-gpu=name,driver_version,memory.total,power.limit,clocks.max.sm --format=csv,noheader 2>&1 | head -1)"
    nvidia-smi -q -d CLOCK 2>&1
}

machine() {
    export PATH=$PATH:/usr/local/cuda/bin
    facts | tee "$work/machine.txt" | sed '/^$/d' | tee -a "$work/summary.txt"
    local library
    # What torch.matmul calls, so that both sides of a comparison use one library.
    if [ -z "${MEMSCAPE_CUBLASLT:-}" ] && library=$(python3 "$scripts/cublaslt.py" 2>/dev/null); then
        export MEMSCAPE_CUBLASLT=$library
    fi
    "$cli" devices >"$work/logs/devices.txt" 2>&1
    grep 'cuda:0' "$work/logs/devices.txt" | tee -a "$work/summary.txt"
}

# Every version of flash attention that this GPU runs, as a sweep: each is one more than the last.
flash_versions() {
    local last=1
    while [ $last -lt 20 ] && "$cli" predict attention pass=forward implementation=flash version=1,$((last + 1)) --device cuda:0 >/dev/null 2>&1; do
        last=$((last + 1))
    done
    echo "1:$last:1"
}

# ---- steps --------------------------------------------------------------------------------------------------------

# passed NAME: it has a result that stands.
passed() {
    [ -z "$only" ] && [ -r "$work/steps/$1" ] || return 1
    [ "$retry" = 0 ] || [ "$(cut -f3 "$work/steps/$1")" = ok ]
}

left() { echo $((budget - finishing - SECONDS)); }

# step NAME SECONDS COMMAND…
step() {
    local name=$1 seconds=$2
    shift 2
    [[ $name == *$only* ]] || return 0 # a pattern
    if [ $dry = 1 ]; then
        printf '%-36s %4d s  %s\n' "$name" "$seconds" "$*"
        total=$((total + seconds))
    elif passed "$name"; then
        say "$name: $(cut -f3 "$work/steps/$name") before"
        [ "$(cut -f3 "$work/steps/$name")" = ok ] || failed=$((failed + 1))
    elif [ "$seconds" -gt "$(left)" ]; then
        say "$name: LEFT OUT, it takes about $seconds s and $(left) s are left"
        failed=$((failed + 1))
    else
        run_step "$name" "$seconds" "$@"
        [ $((SECONDS - archived)) -lt "$archive_every" ] || archive
    fi
}

run_step() {
    local name=$1 limit=$((3 * $2 + 15)) began=$SECONDS status result
    shift 2
    [ -z "${MEMSCAPE_STEP_LIMIT:-}" ] || limit=$MEMSCAPE_STEP_LIMIT
    [ "$limit" -le "$(left)" ] || limit=$(left)
    rm -f "$work/steps/$name"
    # First as Ctrl+C does it: a measurement then keeps the points that it has.
    timeout --signal=INT --kill-after=5 "$limit" "$@" >"$work/logs/$name.txt" 2>&1 </dev/null
    status=$?
    case $status in
    0) result=ok ;;
    3 | 126 | 127) result=absent ;;
    124 | 137) result='out-of-time' ;;
    *) result=failed ;;
    esac
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$stage" "$name" "$result" "$status" "$((SECONDS - began))" "$(date -u +%FT%TZ)" "$version" \
        >"$work/steps/.part" && mv "$work/steps/.part" "$work/steps/$name"
    [ $result = ok ] || failed=$((failed + 1))
    tell "$name" "$result" "$((SECONDS - began))" "$limit"
    shorten "$work/logs/$name.txt"
}

# One line a step, and what a comparison found below it.
tell() {
    local log=$work/logs/$1.txt grade last
    grade=$(sed -n 's/^ *"grade": "\(.\)".*/, grade \1/p' "$work/records/$1.json" 2>/dev/null | tail -1)
    last=$(grep -v '^ ' "$log" | tail -1) # hints are indented
    case $2 in
    ok) say "$1: ok in $3 s$grade" ;;
    absent) say "$1: NOT HERE: $last" ;;
    out-of-time) say "$1: OUT OF TIME, ended after $4 s" ;;
    *) say "$1: FAILED after $3 s: $last" ;;
    esac
    case $2-$1 in
    absent-*) ;;
    *-torch-*) head -60 "$log" | sed 's/^/    /' | tee -a "$work/summary.txt" ;;
    failed-selftest) grep -E 'WRONG|rror' "$log" | head -20 | sed 's/^/    /' | tee -a "$work/summary.txt" ;;
    esac
}

# A log keeps its beginning and its end.
shorten() {
    [ "$(stat -c %s "$1")" -gt 400000 ] || return 0
    { head -c 200000 "$1"; printf '\n… shortened …\n'; tail -c 200000 "$1"; } >"$1.part" && mv "$1.part" "$1"
}

# measure NAME SECONDS EXPERIMENT KEY=VALUE…
measure() {
    local name=$1 seconds=$2
    shift 2
    step "$name" "$seconds" "$cli" measure "$@" --device cuda:0 -o "$work/records/$name.json"
}

# torch NAME SECONDS SCRIPT OPTION…: a comparison with PyTorch
torch() {
    local name=$1 seconds=$2 script=$3 end=$((2 * $2))
    shift 3
    [ $dry = 1 ] || [ "$end" -lt "$(left)" ] || end=$(($(left) - 5)) # its own end is an orderly one
    step "torch-$name" "$seconds" python3 "$scripts/$script" "$cli" "$work/compare/$name.json" --budget $end "$@"
}

# profile NAME KERNELS EXPERIMENT KEY=VALUE…: the first launches of kernels of those names, by Nsight Compute
profile() {
    local name=$1 kernels=$2
    shift 2
    step "ncu-$name" 30 ncu --clock-control none --kernel-name "$kernels" --launch-count 24 --kill yes \
        --section SpeedOfLight --section LaunchStats --section Occupancy --section MemoryWorkloadAnalysis \
        --section ComputeWorkloadAnalysis --section WarpStateStats --section SchedulerStats "$cli" measure "$@" --device cuda:0
}

report() {
    step "report-$stage" "$1" bash -c 'exec "$1" report "$2"/records/*.json --to html -o "$2/report.html" --title "GPU run"' report "$cli" "$work"
}

# ---- all of it ----------------------------------------------------------------------------------------------------

interrupted() {
    say "INTERRUPTED"
    archive
    exit 130
}

main() {
    arguments "$@"
    failed=0 total=0 thinned=0 archived=0 scripts=$root/tests/gpu
    choose_sizes
    if [ $dry = 1 ]; then
        cli=memscape-cli scripts=tests/gpu work=WORK
        "stage_$stage"
        printf '%-36s %4d s of %d\n' "stage $stage" "$total" "$budget"
        return 0
    fi
    { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; } || [ -e /dev/nvidia0 ] ||
        stop 3 "no NVIDIA GPU on this machine: nothing to run here"
    folders
    trap interrupted INT TERM
    say "stage $stage, $(date -u +%FT%TZ), $budget s"
    programs
    machine
    [ "$flash" != all ] || flash=$(flash_versions)
    "stage_$stage"
    say "stage $stage: $([ $failed = 0 ] && echo 'all is well' || echo "$failed STEPS WITHOUT A RESULT"), $SECONDS s"
    archive
    echo "results in $OUT/results.tar.gz"
    [ $failed = 0 ]
}

# SPDX-License-Identifier: Apache-2.0
# Shared by packaging/run and packaging/test: say, install what is missing, find a CUDA compiler.
# Sourced by bash with the repository's root as working directory.

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
stop() { printf 'packaging: %s\n' "$*" >&2; exit "${code:-1}"; }

compiler_packages="g++ cmake ninja-build nlohmann-json3-dev libfmt-dev libexpected-dev libcli11-dev"
measuring_packages="libopenblas0-pthread libdnnl-dev" # opened at run time; -dev: its library has another number in each Debian
window_packages="qt6-base-dev libqt6svg6-dev libqt6svg6 libqcustomplot-dev fonts-dejavu-core"
test_packages="valgrind locales desktop-file-utils appstream libxml2-utils file libbenchmark-dev lld groff-base dpkg-dev"

# is_installed PACKAGE: by its own name or by that of a package that took its place (Debian 13's qt6-svg-dev
# provides libqt6svg6-dev).
is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ||
        dpkg-query -W -f '${db:Status-Status},${Provides}\n' 2>/dev/null | grep '^installed,' | tr ',' '\n' |
        sed 's/^ *//; s/ (.*//' | grep -xF "$1" >/dev/null
}

# install PACKAGE…: only what is missing, as root or through sudo, without questions.
install() {
    local missing=() as_root=()
    command -v dpkg-query >/dev/null || stop "this script installs with apt (Debian, Ubuntu); on this system install: $*, then see README.md, Build by hand"
    local package
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || stop "run this as root, or install yourself: apt-get install ${missing[*]}"
        as_root=(sudo)
        [ -t 0 ] || as_root=(sudo -n) # without a terminal no question can be answered
        "${as_root[@]}" true || stop "sudo would ask for a password and there is no terminal; install yourself: apt-get install ${missing[*]}"
    fi
    say "installing: ${missing[*]}"
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o=Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300
        -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold) # a changed configuration file stays, unasked
    if [ -z "${MEMSCAPE_LISTS_ARE_NEW:-}" ]; then # once for this script and those that it calls
        "${apt[@]}" update </dev/null >&2 || say "apt-get update failed: continuing with the present lists"
        export MEMSCAPE_LISTS_ARE_NEW=1
    fi
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >&2 ||
        stop "apt-get could not install: ${missing[*]} (is the network there? is this Debian 12 or newer?)"
}

# has_fuzzer: whether clang is there with libFuzzer's runtime.
has_fuzzer() {
    command -v clang++ >/dev/null && [ -e "$(clang++ -print-resource-dir)/lib/linux/libclang_rt.fuzzer-$(uname -m).a" ]
}

# install_fuzzer: clang and libFuzzer, whose package has clang's number in its name.
install_fuzzer() {
    has_fuzzer && return 0
    install clang
    install "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev"
}

# configure_sanitized: build/asan, with clang and libFuzzer where they are, so that the tests and tests/fuzz/run share
# one build; with g++ otherwise. A folder that another compiler configured is configured anew.
configure_sanitized() {
    local compiler=${CXX:-g++} fuzz=OFF options=(-DMEMSCAPE_WERROR=OFF) # warnings are named by --strict
    if has_fuzzer; then
        export CC=clang CXX=clang++
        compiler=clang++ fuzz=ON
    fi
    [ ! -e build/asan/CMakeCache.txt ] || grep -q "^CMAKE_CXX_COMPILER:.*/$compiler\$" build/asan/CMakeCache.txt || options+=(--fresh)
    cmake --preset asan -DMEMSCAPE_FUZZ=$fuzz "${options[@]}" -Wno-dev >&2
}

# measure_and_report CLI FOLDER: three experiments on this CPU with sweeps that take less than a minute
# together, their records and an HTML report in FOLDER, the verdicts on the terminal.
measure_and_report() {
    local cli=$1 folder=$2 experiment records=()
    local -A short=([hierarchy]="working_set=16KiB,256KiB,4MiB,64MiB" [stride]="stride=1,4,16,64"
                    [attention]="sequence=128,256,512,1024 heads=4 head_dim=64")
    say "no display: measuring hierarchy, stride and attention on this CPU"
    mkdir -p "$folder"
    for experiment in hierarchy stride attention; do
        # shellcheck disable=SC2086 # words of parameters
        "$cli" measure $experiment ${short[$experiment]} --device cpu -o "$folder/$experiment.json" >&2
        records+=("$folder/$experiment.json")
    done
    "$cli" report "${records[@]}" --to html --title "Memscape on this CPU" -o "$folder/memscape.html" >&2
    "$cli" report "${records[@]}" --to text --title "Memscape on this CPU" >&2
    say "the report: $folder/memscape.html"
}

# find_nvcc: sets CUDACXX when a CUDA compiler is found, in the usual places or in build/cuda.
find_nvcc() {
    [ -n "${CUDACXX:-}" ] && return 0
    local nvcc
    for nvcc in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc build/cuda/nvidia/cu*/bin/nvcc; do
        [ -n "$nvcc" ] && [ -x "$nvcc" ] && { CUDACXX=$(realpath "$nvcc"); export CUDACXX; return 0; }
    done
    return 1
}

# pip_install FOLDER LIST: exactly the packages of the list, by version and hash, and no other, into the folder.
pip_install() {
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
        --require-hashes --no-deps --only-binary :all: --target "$1" -r "$2" >&2
}

# install_cuda: NVIDIA's compiler from its Python packages, into build/cuda. Nothing else is touched.
# It is put together beside it first: what is in build/cuda is whole, also after an interruption.
install_cuda() {
    find_nvcc && return 0
    install python3-pip
    say "installing NVIDIA's CUDA compiler into build/cuda (about 130 MB to fetch)"
    local part=build/cuda.part root library
    rm -rf "$part"
    pip_install "$part" packaging/cuda.txt ||
        stop "the CUDA compiler could not be fetched; without it Memscape builds and predicts GPUs but cannot measure them"
    # The packages are made for programs that are built already: nvcc looks for its libraries in lib64,
    # and CMake for a libcudart.so without a version.
    for root in "$part"/nvidia/cu*; do
        [ -d "$root/lib64" ] || ln -s lib "$root/lib64"
        for library in "$root"/lib/libcudart.so.*; do
            [ -e "$root/lib/libcudart.so" ] || ln -s "${library##*/}" "$root/lib/libcudart.so"
        done
    done
    rm -rf build/cuda
    mv "$part" build/cuda
    find_nvcc || stop "the packages contain no nvcc"
}

# find_pytorch: sets MEMSCAPE_PYTHON to the Python of build/pytorch when it is there and none is chosen.
find_pytorch() {
    [ -n "${MEMSCAPE_PYTHON:-}" ] || [ ! -x build/pytorch/bin/python ] || export MEMSCAPE_PYTHON=$PWD/build/pytorch/bin/python
}

# install_pytorch: a Python with PyTorch for the CPU in build/pytorch: Debian's python3-torch, since the torch of the
# Python registry is CUDA's, of several GB. A newer one, or transformers, go into the same folder with its pip.
install_pytorch() {
    has_torch build/pytorch/bin/python && return 0
    install python3-torch python3-venv
    say "making build/pytorch, a Python with PyTorch"
    rm -rf build/pytorch
    /usr/bin/python3 -m venv --system-site-packages build/pytorch >&2 && has_torch build/pytorch/bin/python ||
        stop "the virtual environment could not be made; without it training steps are predicted, not measured"
    say "for library models: build/pytorch/bin/python -m pip install torch transformers torchvision"
}

# has_torch PYTHON: whether it can be run and has PyTorch, which is not imported.
has_torch() {
    [ -x "$1" ] && "$1" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'
}

# install_disassembler: cuobjdump and nvdisasm, which the compiler's packages do not have, into build/sass for the
# test sass_lint. Without them that test is skipped and nothing else is lost.
install_disassembler() {
    local folder
    for folder in "$(dirname "$CUDACXX")" /usr/local/cuda/bin build/sass/nvidia/cu*/bin; do
        [ -x "$folder/cuobjdump" ] && [ -x "$folder/nvdisasm" ] && return 0
    done
    command -v cuobjdump >/dev/null && command -v nvdisasm >/dev/null && return 0
    install python3-pip
    say "installing NVIDIA's disassembler into build/sass (about 3 MB to fetch)"
    rm -rf build/sass.part
    if pip_install build/sass.part packaging/sass.txt; then
        rm -rf build/sass
        mv build/sass.part build/sass
    else
        rm -rf build/sass.part
        say "the disassembler could not be fetched: the test sass_lint will be skipped"
    fi
}

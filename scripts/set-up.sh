# Installs the programs that a fresh Debian system lacks. Sourced by ./demo and ./test. Installed programs are not changed.

readonly RUST_MINOR_MIN=95

step() {
    printf '==> %s\n' "$*"
}

fail() {
    printf '%s: %s\n' "$0" "$*" >&2
    exit 1
}

# quietly COMMAND...: runs a command, and shows its output only if it fails.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        tail -n 60 "$log" >&2
        rm -f "$log"
        fail "failed with $status: $*"
    fi
    rm -f "$log"
}

# need_commands COMMAND:PACKAGE...: installs the packages of missing commands. For files that are not commands, such as modules,
# COMMAND is an absolute path.
need_commands() {
    local pair missing=()
    for pair in "$@"; do
        is_there "${pair%%:*}" || missing+=("${pair#*:}")
    done
    [ "${#missing[@]}" -eq 0 ] && return
    command -v apt-get >/dev/null || fail "please install what provides: ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || fail "run as root once, or: apt-get install ${missing[*]}"
    step "installing ${missing[*]}"
    install_packages "${missing[@]}"
}

# is_there NAME: whether a command with this name exists, or a file with this absolute path.
is_there() {
    case $1 in
        /*) [ -e "$1" ] ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

install_packages() {
    # Debian starts a server when its package is installed. This policy prevents that, because only the programs are needed.
    local policy=/usr/sbin/policy-rc.d made_policy=no
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
        made_policy=yes
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    export DEBIAN_FRONTEND=noninteractive
    quietly apt-get -q update
    quietly apt-get -q install -y --no-install-recommends "$@"
    if [ "$made_policy" = yes ]; then
        rm -f "$policy"
        trap - EXIT
    fi
}

# want_go_program PATH@VERSION: builds a Go program if it is missing. This may fail, because Debian's Go may be too old. Then the
# scenarios that need the program are skipped.
want_go_program() {
    local name=${1%%@*}
    name=${name##*/}
    is_there "$name" && return
    if ! is_there go; then
        step "without Go there is no $name: its scenarios are skipped"
        return
    fi
    step "building $name"
    GOBIN=/usr/local/bin timeout 300 go install "$1" >/dev/null 2>&1 ||
        step "$name cannot be built: its scenarios are skipped"
}

# want_rust_program NAME@VERSION ARGUMENT...: builds a program of Rust, with these arguments of cargo install, if there is none of its
# name. Without it, its step is skipped. Without optimisation, the build takes a third of the time.
want_rust_program() {
    local name=${1%%@*}
    is_there "$name" && return
    step "building $name"
    timeout 600 cargo install --quiet --locked --debug --root /usr/local "$@" >/dev/null 2>&1 ||
        step "$name cannot be built: its step is skipped"
}

rust_is_new_enough() {
    local version
    version=$(cargo --version 2>/dev/null) || return 1
    [[ $version =~ ^cargo\ 1\.([0-9]+)\. ]] && [ "${BASH_REMATCH[1]}" -ge "$RUST_MINOR_MIN" ]
}

# need_rust COMPONENT...: installs Rust with rustup if it is missing or too old.
need_rust() {
    local component components=()
    if [ -r "${CARGO_HOME:-$HOME/.cargo}/env" ]; then
        . "${CARGO_HOME:-$HOME/.cargo}/env"
    fi
    # The installer of rustup does not update the toolchains of an installed rustup.
    if ! rust_is_new_enough && command -v rustup >/dev/null; then
        step "installing the stable Rust with the rustup that is there"
        quietly rustup toolchain install stable --profile minimal
        export RUSTUP_TOOLCHAIN=stable
    fi
    if ! rust_is_new_enough; then
        need_commands curl:curl
        [ -e /etc/ssl/certs/ca-certificates.crt ] || install_packages ca-certificates
        step "installing Rust with rustup"
        for component in "$@"; do
            components+=(--component "$component")
        done
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
            quietly sh -s -- -y --profile minimal --no-modify-path "${components[@]}"
        . "${CARGO_HOME:-$HOME/.cargo}/env"
        rust_is_new_enough || fail "Rust 1.$RUST_MINOR_MIN or newer is needed, got: $(cargo --version)"
    fi
    for component in "$@"; do
        cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || quietly rustup component add "$component"
    done
}

#!/usr/bin/env bash
# Installs, upgrades, removes and purges weir's package in a copy of this system, and prints each step. The test runs this script in
# its own mount namespace, so the system is not changed.
#
#   install.sh FOLDER PACKAGE NEXT-PACKAGE
#
# Exit status: 0 passed, 1 failed, 77 the system cannot be copied (no overlay file system).
set -euo pipefail
readonly NO_COPY=77
readonly folder=$1 package=$2 next=$3

fail() {
    printf 'failed: %s\n' "$*" >&2
    exit 1
}

# The copy. Its changes are stored in memory.
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/changes" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/changes,workdir=$folder/work" "$folder/root" || exit "$NO_COPY"
readonly root=$folder/root
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
# Without /run, the maintainer scripts find no systemd, as in a container. The test starts weir itself.
mount -t tmpfs tmpfs "$root/run"
# Earlier installations may have left files.
rm -rf "$root/var/lib/weir" "$root/var/log/weir"
cp "$package" "$root/one.deb"
cp "$next" "$root/two.deb"

readonly within=(chroot "$root" /usr/bin/env -i DEBIAN_FRONTEND=noninteractive
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)

within() {
    "${within[@]}" "$@"
}

# left: lists the remaining files of weir, except man's cache. Devices are markers for removed files of the system.
left() {
    (cd "$folder/changes" && find . \( -path ./tmp -o -path ./var/cache \) -prune -o -not -type c \( -iname '*weir*' -o -path '*/weir/*' \) -print | sort)
}

# serve: runs weir as its user with the privileges of the unit, prints a response, and stops weir.
serve() {
    # The folders that systemd would create for the unit.
    within install -d -o weir -g weir /run/weir /var/lib/weir /var/log/weir
    "${within[@]}" setpriv --reuid weir --regid weir --init-groups --no-new-privs --bounding-set -all \
        --inh-caps -all /usr/bin/weir run /etc/weir/weir.yaml >"$folder/output.log" 2>&1 &
    local weir=$! answer=
    for _ in $(seq 200); do
        answer=$(within curl -s http://127.0.0.1:8080/ || true)
        [ -z "$answer" ] || break
        kill -0 "$weir" || fail "weir ended: $(cat "$folder/output.log")"
        sleep 0.05
    done
    printf 'answer: %s\n' "$answer"
    within setpriv --reuid weir --regid weir --init-groups weir status >"$folder/status.log" || fail "weir status: $(cat "$folder/status.log")"
    kill -TERM "$weir"
    wait "$weir" || fail "weir ended with $?: $(cat "$folder/output.log")"
}

ip link set lo up
within dpkg -i /one.deb >"$folder/dpkg.log" 2>&1 || fail "installation: $(cat "$folder/dpkg.log")"
printf 'installed: %s\n' "$(within dpkg-query -W -f '${Version} ${Status}' weir)"
printf 'user: %s\n' "$(within getent passwd weir | cut -d: -f1,6,7)"
printf 'configuration: %s\n' "$(within stat -c '%U:%G %a' /etc/weir/weir.yaml)"
within weir check /etc/weir/weir.yaml
for page in weir weir-run weir-waf-test; do
    within test -s "/usr/share/man/man1/$page.1.gz" || fail "no man page $page"
done
within bash -c 'source /usr/share/bash-completion/completions/weir && complete -p weir' >/dev/null || fail "no completion"
if within bash -c 'command -v systemd-analyze' >/dev/null; then
    within systemd-analyze verify /usr/lib/systemd/system/weir.service || fail "the unit is not sound"
fi
serve

# The upgrade keeps the user's changes.
sed -i 's/weir runs\./weir still runs./' "$root/etc/weir/weir.yaml"
within dpkg -i /two.deb >"$folder/dpkg.log" 2>&1 || fail "upgrade: $(cat "$folder/dpkg.log")"
printf 'upgraded: %s\n' "$(within dpkg-query -W -f '${Version} ${Status}' weir)"
printf 'configuration: %s\n' "$(within stat -c '%U:%G %a' /etc/weir/weir.yaml)"
serve

within touch /var/lib/weir/key /var/log/weir/access.log
within dpkg -r weir >"$folder/dpkg.log" 2>&1 || fail "removal: $(cat "$folder/dpkg.log")"
within test -e /etc/weir/weir.yaml || fail "a removal keeps the configuration"
within dpkg -P weir >"$folder/dpkg.log" 2>&1 || fail "purge: $(cat "$folder/dpkg.log")"
! within getent passwd weir >/dev/null || fail "the user is left"
printf 'left: %s\n' "$(left | tr '\n' ' ')"

# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
#
# Sourced by the launcher: which packages of packages.txt are missing, and how they come in.
# Reads and writes nothing of the machine but through dpkg-query and apt-get.

# wanted_packages FILE GROUPS: one "a" or "a|b" per line.
wanted_packages() {
  awk -v groups=" $2 " '!/^#/ && NF >= 2 && index(groups, " " $1 " ") { print $2 }' "$1"
}

# missing_packages FILE GROUPS: those of which no alternative is installed.
missing_packages() {
  wanted=$(wanted_packages "$1" "$2")
  # shellcheck disable=SC2046  # one argument per package
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' \
    $(printf '%s\n' "$wanted" | tr '|' '\n') 2>/dev/null | awk '$2 == "installed" { print $1 }')
  printf '%s\n' "$wanted" | awk -v installed="$installed" '
    BEGIN { n = split(installed, names, "\n"); for (i = 1; i <= n; i++) have[names[i]] = 1 }
    { n = split($1, either, "|"); for (i = 1; i <= n; i++) if (either[i] in have) next; print $1 }'
}

# choose_packages NAME…: of each "a|b" the first one that the package lists know.
choose_packages() {
  for entry; do
    choice=${entry%%|*}
    for name in $(printf %s "$entry" | tr '|' ' '); do
      if apt-cache show --no-all-versions "$name" >/dev/null 2>&1; then choice=$name; break; fi
    done
    printf '%s ' "$choice"
  done
}

have_package_lists() {
  for list in /var/lib/apt/lists/*_Packages*; do
    [ -e "$list" ] && return 0
  done
  return 1
}

# as_root COMMAND…: runs it as root, or through sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Root, or a sudo that needs no password, or one that can ask a person for it.
can_be_root() {
  [ "$(id -u)" = 0 ] && return 0
  command -v sudo >/dev/null 2>&1 || return 1
  sudo -n true 2>/dev/null && return 0
  [ -t 0 ] && [ -t 2 ] && [ "${CI-}" != true ]
}

# apt_get WORDS…: with its progress on standard error and all that it says in $setup_log. apt tells its progress through a
# file that is opened behind sudo, which hands on no descriptor; it makes its descriptors non-blocking, and on a pipe the
# packages' own scripts would then fail when nobody reads fast enough.
apt_get() {
  watch_apt &
  setup_watch=$!
  # shellcheck disable=SC2016  # the inner shell expands
  as_root sh -c 'status=$1; shift; exec env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get "$@" 3>"$status"' sh \
    "$setup_folder/progress" -q -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 \
    -o Acquire::http::Timeout=30 -o APT::Status-Fd=3 "$@" >>"$setup_log" 2>&1
  setup_status=$?
  kill "$setup_watch" 2>/dev/null
  wait "$setup_watch" 2>/dev/null
  if for_people; then printf '\r\033[K' >&2; fi
  return $setup_status
}

# Does a person look at standard error?
for_people() {
  [ -t 2 ] && [ "${CI-}" != true ] && [ "${TERM-dumb}" != dumb ]
}

# Tells now and then what apt's last line of progress says, until it is ended: for people on one line that is written
# anew, in a log a line every half minute.
watch_apt() {
  pause=${VERBS_ABI_LOG_SECONDS:-30}
  if for_people; then pause=0.5; fi
  # What is left of it when it is ended must hold nobody's pipe.
  while sleep "$pause" >/dev/null 2>&1; do
    line=$(tail -n 1 "$setup_folder/progress" 2>/dev/null)
    case $line in
      dlstatus:*) doing=fetching ;;
      pmstatus:*) doing=installing ;;
      *) doing='' ;;
    esac
    rest=${line#*:*:}
    text="${doing:-installing} packages${doing:+: ${rest%%.*} % (${rest#*:})}, $(($(date +%s) - setup_begin)) s"
    if for_people; then
      # Anew each time: a window may change its size.
      width=$(stty size 2>/dev/null <&2) && width=${width#* } || width=80
      [ "$width" -gt 1 ] 2>/dev/null || width=80
      printf "\\r\\033[K%.$((width - 1))s" "verbs-abi: $text" >&2
    else
      printf 'verbs-abi: %s\n' "$text" >&2
    fi
  done
}

# apt-get update, a few times if another one holds the lock of the lists.
update_lists() {
  tries=0
  until apt_get update; do
    tries=$((tries + 1))
    [ $tries -lt 20 ] || return 1
    tail -n 5 "$setup_log" | grep -q 'Could not get lock' || return 1
    sleep 3
  done
}

# The line that a person can run instead.
apt_line() {
  printf '  apt-get update && apt-get install --no-install-recommends %s\n' "$*" >&2
}

# setup_failed WHAT PACKAGE…
setup_failed() {
  printf 'verbs-abi: the missing packages could not be installed: %s failed\n' "$1" >&2
  shift
  grep -E '^[EW]:|rror' "$setup_log" | tail -n 15 | sed 's/^/  /' >&2
  printf 'All that apt-get said stands in %s\n' "$setup_log" >&2
  echo 'Install them by hand, then call verbs-abi again:' >&2
  apt_line "$@"
  return 1
}

install_packages() {
  apt_get install -y --no-install-recommends "$@"
}

# ensure_packages FILE GROUPS: 0 when all is there. What it prints goes to stderr.
ensure_packages() {
  if ! command -v dpkg-query >/dev/null 2>&1; then
    echo 'verbs-abi: needs a Debian system (there is no dpkg-query here)' >&2
    return 1
  fi
  missing=$(missing_packages "$1" "$2")
  [ -z "$missing" ] && return 0

  # shellcheck disable=SC2046,SC2086  # one argument per package, from here on
  if ! can_be_root; then
    echo 'verbs-abi: packages are missing, and without root or sudo they cannot be installed' \
      'from here. As root, run:' >&2
    apt_line $(choose_packages $missing)
    return 1
  fi

  setup_folder=$(mktemp -d "${TMPDIR:-/tmp}/verbs-abi-apt.XXXXXX") || return 1
  setup_log=$setup_folder/log
  : >"$setup_log"
  setup_begin=$(date +%s)
  # shellcheck disable=SC2086,SC2116
  printf 'verbs-abi: installing %s packages: %s\n' "$(echo $missing | wc -w)" \
    "$(choose_packages $missing | sed 's/ $//')" >&2
  # Also when the lists turn out to be older than the archive: once more with new ones.
  # shellcheck disable=SC2046,SC2086
  if ! have_package_lists || ! install_packages $(choose_packages $missing); then
    update_lists || { setup_failed 'apt-get update' $(choose_packages $missing); return 1; }
    install_packages $(choose_packages $missing) ||
      { setup_failed 'apt-get install' $(choose_packages $missing); return 1; }
  fi
  printf 'verbs-abi: packages are installed, %s s\n' "$(($(date +%s) - setup_begin))" >&2

  missing=$(missing_packages "$1" "$2")
  if [ -n "$missing" ]; then
    # shellcheck disable=SC2086,SC2116
    printf 'verbs-abi: still missing after apt-get install: %s\n' "$(echo $missing)" >&2
    printf 'All that apt-get said stands in %s\n' "$setup_log" >&2
    return 1
  fi
  rm -rf "$setup_folder"
}

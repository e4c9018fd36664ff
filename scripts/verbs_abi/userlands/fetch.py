# SPDX-License-Identifier: BSD-2-Clause
"""Brings a userland into the cache: pinned packages, or with a notice what its suite has now."""

import dataclasses

from verbs_abi import paths
from verbs_abi.errors import UserError
from verbs_abi.progress import Progress
from verbs_abi.userlands import archive, definition, store


def ensure(wanted, *, deep=False, again=False):
    """Makes the userland ready; returns its Store. Cheap when it is ready already: then only what it runs is looked at.

    deep: check every unpacked file. What is wrong is unpacked anew in either case.
    again: fetch also when it is ready with other versions than the pinned ones.
    """
    place = store.Store(wanted)
    if not deep and not again and place.is_ready() and not place.changed():
        return place
    try:
        _ensure(place, wanted, deep, again)
    except OSError as error:
        raise UserError(
            f"userland '{wanted.name}' cannot be put into the cache {paths.cache_dir()}: {error}",
            hint="VERBS_ABI_CACHE names another folder.",
        ) from error
    return place


def _ensure(place, wanted, deep, again):
    with Progress(f"userland {wanted.name}") as progress, place.lock(note=progress.note):
        manifest = place.manifest()
        if place.is_ready(manifest):
            damage = place.damage() if deep else place.changed()
            if not damage and not (again and manifest["substituted"]):
                return
            if damage:
                progress.note("unpacked anew: " + "; ".join(damage[:3]))
        place.sweep()
        _fetch(place, wanted, progress)


def _fetch(place, wanted, progress):
    missing = [package for package in wanted.packages if place.deb(package) is None]
    packages, substituted = list(wanted.packages), []
    if missing:
        size = sum(package.size for package in missing)
        progress.note(f"fetching {len(missing)} packages of {wanted.suite}, {size / 1e6:.1f} MB")
        failed = _download(place, missing, progress)
        if failed:
            packages, substituted = _substitute(place, wanted, failed, progress)
    place.install(packages, substituted, progress)
    for row in substituted:
        progress.note("notice: " + store.substitution_text(row))
    progress.note("ready")


def _download(place, packages, progress):
    """Asks one mirror after the other. Returns {name: exception} of what none of them gave."""
    failed = {}
    with place.workspace() as folder:
        left = list(packages)
        for mirror in archive.mirrors():
            progress.update(f"fetching {len(left)} packages")
            try:
                failed = archive.download(left, folder, mirror=mirror)
            except archive.Unreachable as error:
                failed = {
                    package.name: error
                    for package in left
                    if not (folder / f"{package.sha256}.deb").exists()
                }
            left = [package for package in left if package.name in failed]
            if not left:
                break
        place.keep_debs(folder)
    return {package.name: failed[package.name] for package in left}


def _substitute(place, wanted, failed, progress):
    """What to unpack when pinned packages failed: (packages, rows about what is not as pinned).

    Packages of one source stand or fall together: a libibverbs1 and providers of two versions are
    no userland that anybody has.
    """
    kinds = {type(error) for error in failed.values()}
    if archive.Mismatch in kinds:
        raise _mismatch(wanted, failed)
    if archive.Unreachable in kinds:
        raise _unreachable(wanted, failed)

    sources = {package.source for package in wanted.packages if package.name in failed}
    names = [package.name for package in wanted.packages if package.source in sources]
    progress.note(
        f"{', '.join(sorted(failed))}: the pinned version has left the archive; asking what "
        f"{wanted.suite} has now"
    )
    now = _current(wanted, names, failed)
    packages, substituted = [], []
    for package in wanted.packages:
        if package.source not in sources:
            packages.append(package)
            continue
        row = {"name": package.name, "wanted": package.version, "purpose": package.purpose}
        if package.name not in now:
            substituted.append({**row, "got": None})
            if package.required:
                raise _gone(place, wanted, package)
            continue
        new = dataclasses.replace(package, **now[package.name])
        packages.append(new)
        if new.version != package.version:
            substituted.append({**row, "got": new.version})
    still = _download(
        place, [package for package in packages if place.deb(package) is None], progress
    )
    if still:
        if any(isinstance(error, archive.Mismatch) for error in still.values()):
            raise _mismatch(wanted, still)
        raise _unreachable(wanted, still)
    return packages, substituted


def _current(wanted, names, failed):
    error = None
    for mirror in archive.mirrors():
        try:
            return archive.current(
                wanted.suite, names, mirror=mirror, state=archive.state_of(wanted.suite, wanted.arch),
                arch=wanted.arch,
            )
        except archive.Unreachable as unreachable:
            error = unreachable
    raise _unreachable(wanted, {**failed, f"package lists of {wanted.suite}": error})


def _details(wanted, failed):
    versions = {package.name: package for package in wanted.packages}
    for name, error in list(failed.items())[:6]:
        package = versions.get(name)
        label = f"{name} {package.version}" if package else name
        yield f"{label} ({wanted.suite}): {error}"
    if len(failed) > 6:
        yield f"and {len(failed) - 6} more"


def _what_still_works(wanted):
    """For the end of an error: which userlands can be used all the same."""
    ready = []
    for name, other in definition.load_all().items():
        if name != wanted.name and store.Store(other).state()[0] == "ready":
            ready.append(name)
    if ready:
        return f"Without it these userlands still work: {', '.join(ready)} (--userland NAME)."
    return "No other userland is in the cache yet; commands that run no userland still work."


def _unreachable(wanted, failed):
    return UserError(
        f"userland '{wanted.name}': packages of Debian's {wanted.suite} could not be fetched, "
        "the archive does not answer",
        details=_details(wanted, failed),
        hint="Is there a network? VERBS_ABI_DEBIAN_MIRROR names another mirror. "
        + _what_still_works(wanted),
    )


def _mismatch(wanted, failed):
    wrong = {name: error for name, error in failed.items() if isinstance(error, archive.Mismatch)}
    pins = {package.name: package.sha256 for package in wanted.packages}
    return UserError(
        f"userland '{wanted.name}': what the archive sent is not the pinned package",
        details=[
            f"{name}: expected SHA-256 {pins.get(name, '(of the package list)')}: {error}"
            for name, error in wrong.items()
        ],
        hint="A proxy or mirror that alters files does this. " + _what_still_works(wanted),
    )


def _gone(place, wanted, package):
    text = (
        f"{package.name} {package.version} is no longer in Debian's suite {wanted.suite}, "
        "nor is a newer version"
    )
    place.remember_gone(text)
    return UserError(
        f"userland '{wanted.name}' cannot be fetched: {text}",
        hint=_what_still_works(wanted)
        + f" Maintainers: matrix/userlands/{wanted.name}.json names the packages.",
    )

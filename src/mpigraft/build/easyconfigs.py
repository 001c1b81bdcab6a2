"""Write a plan as easyconfigs, one a package, which EasyBuild builds with the machine's compiler.

The names of parameters and templates are EasyBuild 5's:
https://docs.easybuild.io/writing-easyconfig-files/
"""

from __future__ import annotations

import pprint
import re
import shlex
from collections.abc import Iterable, Mapping

from mpigraft.build.values import BuildPlan, BuildStep, PlannedPatch

PLACE = re.compile(r"\{([a-z0-9-]+)\}")
WIDTH = 110  # of a line; EasyBuild's style check wants 120 at most
SHARED = "SO"  # the suffix of a shared library
NOT_OF_TARBALLS = (
    "toolchainopts", "preconfigopts", "configopts", "prebuildopts", "buildopts", "preinstallopts",
    "install_cmd", "installopts",
)  # fmt: skip


def easyconfigs_of(plan: BuildPlan) -> dict[str, str]:
    """Return the text of each easyconfig by the name of its file, in the order of building."""
    return {_file_name(step, plan): render_easyconfig(step, plan) for step in plan.steps}


def render_easyconfig(step: BuildStep, plan: BuildPlan) -> str:
    """Write one package as EasyBuild reads it. All values of a table become literals of Python,
    which EasyBuild's parser evaluates."""
    package, archive, compiler = step.package, step.archive, plan.compiler
    suffix = suffix_of(plan)
    needs = [(plan_name(plan, name), version_of(plan, name), suffix) for name in step.needs]
    configure = (
        [f"CC={compiler.cc}", f"CXX={compiler.cxx}"] if "configure" not in package.skip else []
    )
    if package.easyblock == "CMakeMake":
        configure = [f"-DCMAKE_C_COMPILER={compiler.cc}", f"-DCMAKE_CXX_COMPILER={compiler.cxx}"]
    elif "fortran" in plan.host.provided and package.module == "mpi":
        configure.append(f"FC={compiler.fc}")
    configure += step.configure
    exported = _exported(step, plan)
    prepare = f"{archive.prepare} && " if archive.prepare else ""
    make = _placed(package.make, plan)
    patches = [planned.patch.file for planned in step.patches]
    values: dict[str, object] = {
        "easyblock": package.easyblock,
        "name": package.name,
        "version": step.version,
        "versionsuffix": suffix,
        "homepage": archive.url or archive.git or "(none)",
        "description": f"{package.what}. Planned by mpigraft: {step.why}".replace("%", "%%"),
        "toolchain": {"name": "system", "version": "system"},
        "toolchainopts": {} if _wrapped(plan) else {"rpath": False},
        "source_urls": [archive.url] if archive.url else [],
        "sources": [_source(step), *(_patch_source(planned) for planned in step.patches)],
        "patches": patches,
        "checksums": [
            (not step.packed and archive.sha256) or None,
            *[planned.sha256 for planned in step.patches] * 2,
        ],
        "dependencies": needs,
        "preconfigopts": exported + prepare,
        "configopts": _placed(configure, plan),
        "prebuildopts": exported,
        "buildopts": " ".join([*package.targets, make]).strip(),
        "preinstallopts": exported,
        "install_cmd": package.install,
        "installopts": make,
        "skipsteps": list(package.skip),
        "sanity_check_paths": {
            "files": [file.replace(f".{SHARED}", ".so") for file in package.files],
            "dirs": [],
        },
        "moduleclass": package.module,
    }
    if package.easyblock == "Tarball":
        for key in NOT_OF_TARBALLS:
            del values[key]
    kept = {key: value for key, value in values.items() if value or key == "toolchain"}
    if package.easyblock == "ConfigureMake":
        kept |= {"build_type": False, "host_type": False}  # configure finds them, not EasyBuild
    return "".join(_assignment(key, value) for key, value in kept.items())


def _assignment(key: str, value: object) -> str:
    """Write a parameter in lines that EasyBuild's style check accepts."""
    start = f"{key} = "
    text = pprint.pformat(value, width=WIDTH - len(start), sort_dicts=False)
    return start + text.replace("\n", "\n" + " " * len(start)) + "\n"


def suffix_of(plan: BuildPlan) -> str:
    """Return the suffix that separates builds with different compilers or for different stacks."""
    stack = plan.host.stack
    return f"-{plan.compiler.id}{f'-{stack.name}' if stack else ''}"


def plan_name(plan: BuildPlan, package: str) -> str:
    return next(step.package.name for step in plan.steps if step.id == package)


def version_of(plan: BuildPlan, package: str) -> str:
    return plan.versions[package]


def root_variable(name: str) -> str:
    """EasyBuild's variable with the prefix of a package: EBROOTJSONMINC of json-c."""
    return "EBROOT" + name.replace("+", "plus").replace("-", "min").replace(".", "").upper()


def _source(step: BuildStep) -> object:
    archive = step.archive
    if archive.git:
        at = {"commit": archive.commit} if archive.commit else {"tag": archive.tag}
        config = {"url": archive.git, "repo_name": archive.repository, **at}
        return {"filename": archive.file, "git_config": config}
    if archive.download:
        return {"filename": archive.file, "download_filename": archive.download}
    return archive.file


def _patch_source(planned: PlannedPatch) -> dict[str, object]:
    """Return a patch as a source: only sources have a name of their own for downloading."""
    patch = planned.patch
    source: dict[str, object] = {"filename": patch.file, "extract_cmd": "cp %s ."}
    if patch.url:
        source |= {"source_urls": [patch.url], "download_filename": patch.download or patch.file}
    return source


def _wrapped(plan: BuildPlan) -> bool:
    """Return whether EasyBuild's wrapper of gcc adds search paths: it has none of other
    compilers."""
    return plan.compiler.cc == "gcc"


def _exported(step: BuildStep, plan: BuildPlan) -> str:
    """Return where packages of a stack are that this one needs, for no module of the plan says so;
    and search paths, where EasyBuild's wrapper does not add them."""
    used = {*step.package.needs, *(m for word in step.configure for m in PLACE.findall(word))}
    offers = [offer for name, offer in sorted(plan.host.provided.items()) if name in used]
    places = [_quoted(offer.prefix) for offer in offers if offer.of_stack]
    words = []
    if places:
        rows = {
            "CPATH": [f"{place}/include" for place in places],
            "LIBRARY_PATH": [f"{place}/lib" for place in places],
            "PKG_CONFIG_PATH": [f"{place}/lib/pkgconfig" for place in places],
        }
        words = [f"{name}={':'.join(folders)}:${name}" for name, folders in rows.items()]
    own = [] if _wrapped(plan) else _search_paths(step, plan)
    if places or own:
        folders = [*own, *(f"{place}/lib" for place in places)]
        flags = " ".join(["-Wl,--disable-new-dtags", *(f"-Wl,-rpath,{path}" for path in folders)])
        words.append(f'LDFLAGS="{flags}"')
    return f"export {' '.join(words)} && " if words else ""


def _search_paths(step: BuildStep, plan: BuildPlan) -> list[str]:
    """Return the folders of libraries of a package and of all that it needs."""
    needs = [f"${root_variable(plan_name(plan, name))}/lib" for name in step.needs]
    return ["%(installdir)s/lib", *needs]


def _placed(words: Iterable[str], plan: BuildPlan) -> str:
    """Join options; each {NAME} becomes the prefix of that package."""
    own = {name: _quoted(offer.prefix) for name, offer in plan.host.provided.items()}
    prefixes: dict[str, str] = {"own": "%(installdir)s", **own}
    prefixes |= {step.id: f"${root_variable(step.package.name)}" for step in plan.steps}
    return " ".join(_filled(word, prefixes) for word in words)


def _quoted(path: str) -> str:
    """Return a path as one word of the shell that EasyBuild starts configure with, and no
    template."""
    return shlex.quote(path).replace("%", "%%")


def _filled(word: str, prefixes: Mapping[str, str]) -> str:
    return PLACE.sub(lambda match: prefixes[match[1]], word)


def _file_name(step: BuildStep, plan: BuildPlan) -> str:
    return f"{step.package.name}-{step.version}{suffix_of(plan)}.eb"

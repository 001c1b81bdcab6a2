"""Write a plan as easyconfigs, one a package, which EasyBuild builds with the machine's compiler.

The names of parameters and templates are EasyBuild 5's:
https://docs.easybuild.io/writing-easyconfig-files/
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from mpigraft.build.values import BuildPlan, BuildStep, PlannedPatch

PLACE = re.compile(r"\{([a-z0-9-]+)\}")
SHARED = "SO"  # the suffix of a shared library
NOT_OF_TARBALLS = (
    "preconfigopts", "configopts", "prebuildopts", "buildopts", "preinstallopts", "install_cmd",
    "installopts",
)  # fmt: skip


def easyconfigs_of(plan: BuildPlan) -> dict[str, str]:
    """Return the text of each easyconfig by the name of its file, in the order of building."""
    return {_file_name(step, plan): render_easyconfig(step, plan) for step in plan.steps}


def render_easyconfig(step: BuildStep, plan: BuildPlan) -> str:
    """Write one package as EasyBuild reads it. Everything from a table stands there as a literal of
    Python, which EasyBuild's parser evaluates."""
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
        "source_urls": [archive.url] if archive.url else [],
        "sources": [_source(step), *(_patch_source(planned) for planned in step.patches)],
        "patches": patches,
        "checksums": [archive.sha256, *[planned.sha256 for planned in step.patches] * 2],
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
        kept["build_type"] = False  # else EasyBuild fetches a config.guess, --sources or not
    return "".join(f"{key} = {value!r}\n" for key, value in kept.items())


def suffix_of(plan: BuildPlan) -> str:
    """What tells builds with different compilers apart."""
    return f"-{plan.compiler.id}"


def plan_name(plan: BuildPlan, package: str) -> str:
    return next(step.package.name for step in plan.steps if step.id == package)


def version_of(plan: BuildPlan, package: str) -> str:
    return plan.versions[package]


def root_variable(name: str) -> str:
    """EasyBuild's variable with the prefix of a package: EBROOTJSONMINUSC of json-c."""
    return "EBROOT" + name.upper().replace("-", "MINUS").replace("+", "PLUS")


def _source(step: BuildStep) -> object:
    archive = step.archive
    if archive.git:
        config = {"url": archive.git, "repo_name": archive.repository, "tag": archive.tag}
        return {"filename": archive.file, "git_config": config}
    if archive.download:
        return {"filename": archive.file, "download_filename": archive.download}
    return archive.file


def _patch_source(planned: PlannedPatch) -> dict[str, object]:
    """A patch as a source: only sources have a name of their own for downloading."""
    patch = planned.patch
    source: dict[str, object] = {"filename": patch.file, "extract_cmd": "cp %s ."}
    if patch.url:
        source |= {"source_urls": [patch.url], "download_filename": patch.download or patch.file}
    return source


def _exported(step: BuildStep, plan: BuildPlan) -> str:
    """Where packages of a stack are that this one needs: no module of the plan says so."""
    used = {*step.package.needs, *(m for word in step.configure for m in PLACE.findall(word))}
    offers = [offer for name, offer in sorted(plan.host.provided.items()) if name in used]
    places = [_quoted(offer.prefix) for offer in offers if offer.of_stack]
    if not places:
        return ""
    rows = {
        "CPATH": [f"{place}/include" for place in places],
        "LIBRARY_PATH": [f"{place}/lib" for place in places],
        "PKG_CONFIG_PATH": [f"{place}/lib/pkgconfig" for place in places],
    }
    words = [f"{name}={':'.join(folders)}:${name}" for name, folders in rows.items()]
    paths = " ".join(f"-Wl,-rpath,{o.prefix}/lib" for o in offers if o.of_stack)
    return f"export {' '.join(words)} LDFLAGS={_quoted(paths)} && "


def _placed(words: Iterable[str], plan: BuildPlan) -> str:
    """Join options; each {NAME} becomes the prefix of that package."""
    own = {name: _quoted(offer.prefix) for name, offer in plan.host.provided.items()}
    prefixes: dict[str, str] = {"own": "%(installdir)s", **own}
    prefixes |= {step.id: f"${root_variable(step.package.name)}" for step in plan.steps}
    return " ".join(_filled(word, prefixes) for word in words)


def _quoted(path: str) -> str:
    """A path as one word of the shell that EasyBuild starts configure with, and no template."""
    return shlex.quote(path).replace("%", "%%")


def _filled(word: str, prefixes: Mapping[str, str]) -> str:
    return PLACE.sub(lambda match: prefixes[match[1]], word)


def _file_name(step: BuildStep, plan: BuildPlan) -> str:
    return f"{step.package.name}-{step.version}{suffix_of(plan)}.eb"

"""Write a plan as easyconfigs, one a package, which EasyBuild builds with the machine's compiler.

The names of parameters and templates are EasyBuild 5's:
https://docs.easybuild.io/writing-easyconfig-files/
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from mpigraft.build.plan import BuildPlan, BuildStep

PLACE = re.compile(r"\{([a-z0-9-]+)\}")
SHARED = "SO"  # the suffix of a shared library


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
    prepare = f"{archive.prepare} && " if archive.prepare else ""
    values: dict[str, object] = {
        "easyblock": package.easyblock,
        "name": package.name,
        "version": step.version,
        "versionsuffix": suffix,
        "homepage": archive.url or archive.git or "(none)",
        "description": f"{package.what}. Planned by mpigraft: {step.why}".replace("%", "%%"),
        "toolchain": {"name": "system", "version": "system"},
        "source_urls": [archive.url] if archive.url else [],
        "sources": [_source(step)],
        "checksums": [archive.sha256],
        "dependencies": needs,
        "preconfigopts": prepare,
        "configopts": _placed(configure, plan),
        "buildopts": _placed(package.make, plan),
        "installopts": _placed(package.make, plan),
        "skipsteps": list(package.skip),
        "sanity_check_paths": {
            "files": [file.replace(f".{SHARED}", ".so") for file in package.files],
            "dirs": [],
        },
        "moduleclass": package.module,
    }
    if package.easyblock == "Tarball":
        for key in ("preconfigopts", "configopts", "buildopts", "installopts"):
            del values[key]
    kept = {key: value for key, value in values.items() if value or key == "toolchain"}
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


def _placed(words: Iterable[str], plan: BuildPlan) -> str:
    """Join options; each {NAME} becomes the prefix of that package."""
    own = {name: _quoted(prefix) for name, prefix in plan.host.provided.items()}
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

"""Easyconfigs are literals that say what the plan says, whatever stands in a table."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable
from dataclasses import replace

import jsonschema
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.build.easyconfigs import easyconfigs_of, root_variable
from mpigraft.build.plan import plan_build
from mpigraft.build.spack import joined_variants, render_spack
from mpigraft.build.values import BuildHost, BuildPlan, BuildRequest, Offer
from mpigraft.knowledge.builds import packages, plan_table

HOST = BuildHost("x86_64", frozenset({"cxi"}), {"cuda": Offer("/opt/cuda"), "slurm": Offer("/usr")})


def planned(compiler: str = "gnu", host: BuildHost = HOST) -> BuildPlan:
    request = BuildRequest("openmpi", compiler=compiler)
    return plan_build(request, host, packages(), plan_table())


def values(text: str) -> dict[str, object]:
    """What a file sets; ValueError for anything that is no literal."""
    tree = ast.parse(text)
    found: dict[str, object] = {}
    for node in tree.body:
        assert isinstance(node, ast.Assign)
        (target,) = node.targets
        assert isinstance(target, ast.Name)
        found[target.id] = ast.literal_eval(node.value)
    return found


def switches(words: Iterable[str]) -> dict[str, str | bool]:
    """{name: value} of configure's options: True without a value, False of --without-NAME."""
    found: dict[str, str | bool] = {}
    for word in words:
        if option := re.match(r"--(with|enable|without|disable)-([^=]+)=?(.*)", word):
            found[option[2]] = option[1] in ("with", "enable") and (option[3] or True)
    return found


def test_a_file_says_what_the_plan_says() -> None:
    plan = planned()
    files = {name: values(text) for name, text in easyconfigs_of(plan).items()}
    mpi, archive = files["OpenMPI-5.0.8-gnu.eb"], plan.steps[-1].archive
    assert mpi is list(files.values())[-1]
    assert mpi["dependencies"] == [("libfabric", "2.3.0", "-gnu")]
    assert (mpi["sources"], mpi["checksums"]) == ([archive.file], [archive.sha256])
    words = switches(str(mpi["configopts"]).split())
    assert words["ofi"] == f"${root_variable('libfabric')}"
    assert words["cuda"] == HOST.provided["cuda"].prefix
    assert words["mpi-fortran"] is False
    fabric = switches(str(files["libfabric-2.3.0-gnu.eb"]["configopts"]).split())
    assert fabric["json-c"] == f"${root_variable('json-c')}"
    assert "./autogen.sh" in str(files["libcxi-12.0.1-gnu.eb"]["preconfigopts"]).split(" && ")
    assert "configopts" not in files["cassini-headers-12.0.1-gnu.eb"]
    assert "{" not in "".join(str(file.get("configopts")) for file in files.values())


def test_compilers_have_builds_of_their_own() -> None:
    files = easyconfigs_of(planned("llvm"))
    assert all(name.endswith("-llvm.eb") for name in files)
    assert {"CC=clang", "CXX=clang++"} <= set(
        re.findall(r"\w+=[\w+]+", files["OpenMPI-5.0.8-llvm.eb"])
    )
    assert "FC=" not in files["OpenMPI-5.0.8-llvm.eb"]
    fortran = replace(HOST, provided={"fortran": Offer("flang")})
    assert "FC=flang" in easyconfigs_of(planned("llvm", fortran))["OpenMPI-5.0.8-llvm.eb"]


def test_a_compiler_that_easybuild_does_not_wrap_gets_search_paths() -> None:
    """EasyBuild's sanity check fails a library of clang's that has no DT_RPATH."""
    gnu = values(easyconfigs_of(planned())["libfabric-2.3.0-gnu.eb"])
    assert not gnu.keys() & {"toolchainopts", "prebuildopts"}
    llvm = values(easyconfigs_of(planned("llvm"))["libfabric-2.3.0-llvm.eb"])
    assert llvm["toolchainopts"] == {"rpath": False}
    for key, prefix in (("preconfigopts", "%(installdir)s"), ("prebuildopts", "$EBROOTLIBCXI")):
        assert f"-rpath,{prefix}/lib" in str(llvm[key])


def test_easybuild_names_prefixes_so() -> None:
    for name, variable in (("json-c", "EBROOTJSONMINC"), ("OpenMPI", "EBROOTOPENMPI")):
        assert root_variable(name) == variable


@given(st.text(), st.text(min_size=1))
def test_foreign_text_stays_text(what: str, prefix: str) -> None:
    """A prefix is one word of the shell, and neither it nor a reason is a template."""
    plan = planned(host=replace(HOST, provided={"cuda": Offer(prefix)}))
    steps = [replace(step, why=what) for step in plan.steps]
    files = [values(text) for text in easyconfigs_of(replace(plan, steps=tuple(steps))).values()]
    for file in files:
        assert what in str(file["description"]) % ()
    words = shlex.split(str(files[-1]["configopts"]) % ())
    assert switches(words)["cuda"] == prefix


def test_a_spack_environment_pins_every_package() -> None:
    document = yaml.safe_load(render_spack(planned()))["spack"]
    (spec,) = document["specs"]
    mpi, *others = [part.split() for part in spec.split("^")]
    assert mpi == [
        "openmpi@5.0.8", "fabrics=ofi", "+internal-hwloc", "+internal-libevent", "+internal-pmix",
        "+cuda", "schedulers=slurm", "~fortran", "%gcc",
    ]  # fmt: skip
    assert ["libfabric@2.3.0", "fabrics=shm,tcp,rxm,lnx,cxi"] in [one[:2] for one in others]
    assert "libfuse@2.9.9" in {one[0] for one in others}
    assert document["packages"]["cuda"]["externals"][0]["prefix"] == HOST.provided["cuda"].prefix


def test_values_of_a_variant_are_joined() -> None:
    assert joined_variants(["a=x,y", "+b", "a=y,z"]) == ["a=x,y,z", "+b"]


# The parts of Spack's schema that a plan uses, of its lib/spack/spack/schema.
SPACK: dict[str, object] = {
    "type": "object",
    "required": ["spack"],
    "additionalProperties": False,
    "properties": {
        "spack": {
            "type": "object",
            "required": ["specs"],
            "additionalProperties": False,
            "properties": {
                "specs": {"type": "array", "items": {"type": "string"}},
                "concretizer": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"unify": {"type": "boolean"}},
                },
                "view": {"type": "boolean"},
                "packages": {
                    "type": "object",
                    "additionalProperties": False,
                    "patternProperties": {
                        r"^\w[\w-]*$": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {
                                "buildable": {"type": "boolean"},
                                "externals": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["spec"],
                                        "properties": {
                                            "spec": {"type": "string"},
                                            "prefix": {"type": "string"},
                                        },
                                    },
                                },
                            },
                        }
                    },
                },
            },
        }
    },
}
WORD = re.compile(r"\^?[a-z0-9-]+@[0-9.]+|[+~][a-z-]+|[a-z_]+=[a-z0-9,_-]+|%[a-z]+")


PRINTABLE = st.characters(categories=["L", "N", "P", "S"])


@given(
    st.text(PRINTABLE, min_size=1), st.sampled_from(["openmpi", "mpich", "mvapich"]), st.booleans()
)
def test_a_spack_environment_is_as_spacks_schema_wants_it(
    prefix: str, recipe: str, cxi: bool
) -> None:
    """Spack itself is in no registry of packages, so it was not run."""
    offers = {"cuda": Offer(prefix), "hwloc": Offer("/stack/hwloc", "2.9.1", "stack")}
    host = replace(HOST, provided=offers, features=frozenset({"cxi"} if cxi else ()))
    plan = plan_build(BuildRequest(recipe), host, packages(), plan_table())
    document = yaml.safe_load(render_spack(plan))
    jsonschema.validate(document, SPACK)
    (spec,) = document["spack"]["specs"]
    assert [word for word in spec.split() if not WORD.fullmatch(word)] == []
    assert document["spack"]["packages"]["cuda"]["externals"][0]["prefix"] == prefix

"""pyelftools as the oracle: the same facts, read by other people's code from section headers."""

from pathlib import Path
from typing import Any

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import NoteSection, SymbolTableSection

KINDS = {
    "STT_NOTYPE": "none",
    "STT_OBJECT": "object",
    "STT_FUNC": "func",
    "STT_COMMON": "common",
    "STT_TLS": "tls",
    "STT_LOOS": "ipfunc",
    "STT_GNU_IFUNC": "ifunc",
}
MACHINES = {"EM_X86_64": "x86_64", "EM_386": "i386", "EM_AARCH64": "aarch64", "EM_S390": "s390x"}
TYPES = {"ET_DYN": "dyn", "ET_EXEC": "exec", "ET_REL": "rel", "ET_CORE": "core"}


def facts(path: Path) -> dict[str, Any]:
    """What `mpigraft.binary.elf.reader.read_elf` should say of a file, by names of its fields."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        found: dict[str, Any] = {
            "machine": MACHINES.get(elf["e_machine"], elf["e_machine"]),
            "bits": elf.elfclass,
            "endian": "little" if elf.little_endian else "big",
            "type": TYPES[elf["e_type"]],
            "interpreter": None,
            "build_id": None,
            "soname": None,
            "needed": (),
            "rpath": None,
            "runpath": None,
            "version_needs": {},
            "version_defs": (),
            "weak": set(),
            "imported": [],
            "exported": [],
        }
        for segment in elf.iter_segments("PT_INTERP"):
            found["interpreter"] = segment.data().rstrip(b"\0").decode()
        for section in elf.iter_sections():
            if isinstance(section, NoteSection):
                _note(section, found)
            elif isinstance(section, DynamicSection):
                _dynamic(section, found)
            elif isinstance(section, GNUVerNeedSection):
                _needs(section, found)
            elif isinstance(section, GNUVerDefSection):
                _defs(section, found)
        _symbols(elf, found)
    return found


def _note(section: NoteSection, found: dict[str, Any]) -> None:
    for note in section.iter_notes():
        if note["n_type"] == "NT_GNU_BUILD_ID" and note["n_name"] == "GNU":
            found["build_id"] = note["n_desc"]


def _dynamic(section: DynamicSection, found: dict[str, Any]) -> None:
    for tag in section.iter_tags():
        name = str(tag.entry.d_tag).removeprefix("DT_").lower()  # a number where it knows no name
        if name == "needed":
            found["needed"] += (vars(tag)[name],)
        elif name in ("soname", "rpath", "runpath"):
            found[name] = vars(tag)[name]


def _needs(section: GNUVerNeedSection, found: dict[str, Any]) -> None:
    for need, auxiliaries in section.iter_versions():
        for aux in auxiliaries:
            known = found["version_needs"].get(need.name, ())
            found["version_needs"][need.name] = (*known, aux.name)
            if aux["vna_flags"] & 2:
                found["weak"].add((need.name, aux.name))


def _defs(section: GNUVerDefSection, found: dict[str, Any]) -> None:
    for definition, auxiliaries in section.iter_versions():
        if not definition["vd_flags"] & 1:
            found["version_defs"] += (next(iter(auxiliaries)).name,)


def _symbols(elf: ELFFile, found: dict[str, Any]) -> None:
    table = elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        return
    versym = elf.get_section_by_name(".gnu.version")
    needs = elf.get_section_by_name(".gnu.version_r")
    defs = elf.get_section_by_name(".gnu.version_d")
    for number, symbol in enumerate(table.iter_symbols()):
        info = symbol["st_info"]
        if info["bind"] not in ("STB_GLOBAL", "STB_WEAK", "STB_LOOS") or not symbol.name:
            continue
        defined = symbol["st_shndx"] != "SHN_UNDEF"
        if defined and symbol["st_other"]["visibility"] in ("STV_HIDDEN", "STV_INTERNAL"):
            continue
        if symbol["st_shndx"] == "SHN_ABS" and symbol.name in found["version_defs"]:
            continue
        version, library, hidden = None, None, False
        if isinstance(versym, GNUVerSymSection):
            index = versym.get_symbol(number)["ndx"]
            if isinstance(index, int):
                hidden, index = bool(index & 0x8000), index & 0x7FFF
                version, library = _version(index, needs, defs)
        weak = info["bind"] == "STB_WEAK"
        kind = KINDS[info["type"]].replace("ipfunc", "ifunc")
        row = (symbol.name, version, library, defined and not hidden, kind, weak, symbol["st_size"])
        found["exported" if defined else "imported"].append(row)


def _version(index: int, needs: Any, defs: Any) -> tuple[str | None, str | None]:
    if defs is not None and (found := defs.get_version(index)) is not None:
        definition, auxiliaries = found
        return (None if definition["vd_flags"] & 1 else next(iter(auxiliaries)).name), None
    if needs is not None and (found := needs.get_version(index)) is not None:
        return found[1].name, found[0].name
    return None, None

-- Lmod module of mpigraft @VERSION@: copy it to mpigraft/@VERSION@.lua below a folder of MODULEPATH.
-- root is the virtual environment in which mpigraft was installed.
local root = "/opt/mpigraft/@VERSION@"

whatis("Name: mpigraft")
whatis("Version: @VERSION@")
whatis("Description: this machine's own MPI under containers and software stacks, proven and measured")
help([[mpigraft @VERSION@. Begin with `mpigraft discover`; every command has --help.]])

conflict("mpigraft")
prepend_path("PATH", pathJoin(root, "bin"))
-- A Python that needs its own module to start: depends_on("Python/3.13.1-GCCcore-14.2.0")

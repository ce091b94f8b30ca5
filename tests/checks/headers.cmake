# Every header compiles alone, and a second inclusion changes nothing; ration.h does so in C++ too.
#
# COMPILERS: C compilers to try. CXX: a C++ compiler, or empty. FLAGS: what finds the libraries. SCRATCH: a folder to write in.
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)

set(common -Wall -Wextra -Werror -fsyntax-only -D_GNU_SOURCE "-DRATION_VERSION=\"0\"" -DRATION_SLOT_OWNER -I${ROOT} -I${ROOT}/clients/c/include ${FLAGS})

# Leaves the result in `failed` and `output`.
macro(compile source)
	execute_process(COMMAND ${ARGN} ${common} ${source} RESULT_VARIABLE failed
		OUTPUT_VARIABLE output ERROR_VARIABLE output)
endmacro()

file(MAKE_DIRECTORY ${SCRATCH})
check_files(files lib proto clients daemon tests)
list(FILTER files INCLUDE REGEX "\\.h$")
foreach(file IN LISTS files)
	file(WRITE ${SCRATCH}/alone.c "#include \"${file}\"\n#include \"${file}\"\n")
	foreach(compiler IN LISTS COMPILERS)
		compile(${SCRATCH}/alone.c ${compiler} -std=gnu11 -Wshadow -Wconversion -x c)
		if(failed)
			check_wrong(${file} "does not compile alone (${compiler}):\n${output}")
		endif()
	endforeach()
endforeach()

if(CXX AND EXISTS ${ROOT}/clients/c/include/ration.h)
	file(WRITE ${SCRATCH}/alone.cpp "#include <ration.h>\n#include <ration.h>\n")
	compile(${SCRATCH}/alone.cpp ${CXX} -std=c++17 -x c++)
	if(failed)
		check_wrong(ration.h "is no C++ (${CXX}):\n${output}")
	endif()
endif()
check_end()

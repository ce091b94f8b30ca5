# Install libration into a folder, and build a program against it in every way that is promised: pkg-config (shared and static), CMake,
# and C++.
#
#	cmake -D BUILD=.. -D SCRATCH=.. -D PREFIX=.. -D LIBDIR=.. -D CC=.. -D CXX=.. -D FLAGS=.. -D VERSION=.. -P installed.cmake
set(source ${CMAKE_CURRENT_LIST_DIR}/installed)
set(root ${SCRATCH}/root)
set(libdir ${root}${PREFIX}/${LIBDIR})
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})

function(run)
	execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
	if(NOT status EQUAL 0)
		list(JOIN ARGN " " command)
		message(FATAL_ERROR "${command}\n${output}\n${status}")
	endif()
	set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect_it_runs program)
	run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${libdir} ${program})
	if(NOT output STREQUAL "${VERSION} NOT_FOUND\n")
		message(FATAL_ERROR "${program} said: ${output}")
	endif()
endfunction()

# $output becomes what pkg-config says, as a list. It is told where ration.pc is, and no more.
function(ask_pkg_config)
	run(${CMAKE_COMMAND} -E env PKG_CONFIG_LIBDIR=${libdir}/pkgconfig:/usr/lib/x86_64-linux-gnu/pkgconfig:/usr/lib/aarch64-linux-gnu/pkgconfig
		pkg-config ${ARGN} ration)
	separate_arguments(output UNIX_COMMAND "${output}")
	set(output "${output}" PARENT_SCOPE)
endfunction()

separate_arguments(FLAGS UNIX_COMMAND "${FLAGS}")
set(warnings -Wall -Wextra -Werror -pedantic)

foreach(component libration libration-dev)
	run(${CMAKE_COMMAND} -E env DESTDIR=${root} ${CMAKE_COMMAND} --install ${BUILD} --component ${component})
endforeach()
foreach(file ${LIBDIR}/libration.so.0 ${LIBDIR}/libration.so ${LIBDIR}/libration.a include/ration.h share/man/man3/libration.3)
	if(NOT EXISTS ${root}${PREFIX}/${file})
		message(FATAL_ERROR "${file} is not installed")
	endif()
endforeach()

ask_pkg_config(--cflags --libs)
set(told ${output})
foreach(standard c99 c11)
	run(${CC} -std=${standard} ${warnings} ${FLAGS} -o ${SCRATCH}/shared ${source}/program.c ${told})
	expect_it_runs(${SCRATCH}/shared)
endforeach()

ask_pkg_config(--static --cflags --libs)
list(TRANSFORM output REPLACE "^-lration$" "-l:libration.a")
run(${CC} -std=c11 ${warnings} ${FLAGS} -o ${SCRATCH}/static ${source}/program.c ${output})
expect_it_runs(${SCRATCH}/static)

if(CXX)
	ask_pkg_config(--cflags --libs)
	run(${CXX} -std=c++11 ${warnings} ${FLAGS} -o ${SCRATCH}/cxx -x c++ ${source}/program.c -x none ${output})
	expect_it_runs(${SCRATCH}/cxx)
endif()

# Another prefix than the one of the configuration, and then moved from there.
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/first --component libration)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/first --component libration-dev)
file(RENAME ${SCRATCH}/first ${SCRATCH}/second)
set(libdir ${SCRATCH}/second/${LIBDIR})
ask_pkg_config(--cflags --libs)
run(${CC} -std=c11 ${warnings} ${FLAGS} -o ${SCRATCH}/moved ${source}/program.c ${output})
expect_it_runs(${SCRATCH}/moved)
set(libdir ${root}${PREFIX}/${LIBDIR})

list(JOIN FLAGS " " flags)
run(${CMAKE_COMMAND} -S ${source} -B ${SCRATCH}/cmake -D CMAKE_C_COMPILER=${CC} "-DCMAKE_C_FLAGS=${flags}"
	-D CMAKE_PREFIX_PATH=${root}${PREFIX})
run(${CMAKE_COMMAND} --build ${SCRATCH}/cmake)
expect_it_runs(${SCRATCH}/cmake/program)

# A check that can't fail is worth nothing: each is run over small trees, good and bad, made in SCRATCH.
#
# CHECK: its name. Other variables go on to it. The cases are in selftest-CHECK.cmake.
cmake_minimum_required(VERSION 3.25)

# good(FILE CONTENT...) and bad(MESSAGE FILE CONTENT...): the check must pass, or must fail with a message that matches, on a
# tree that holds these files and nothing else wrong.
function(run_case ret_failed ret_output)
	set(tree ${SCRATCH}/tree)
	file(REMOVE_RECURSE ${tree})
	file(WRITE ${tree}/lib/base/fine.c "#include \"lib/base/fine.h\"\n")
	file(WRITE ${tree}/lib/base/fine.h "#pragma once\n")
	set(i 2)
	while(i LESS ARGC)
		math(EXPR next "${i} + 1")
		set(file "${ARGV${i}}")
		set(content "${ARGV${next}}")
		math(EXPR i "${i} + 2")
		# An item of CMake's lists ends at a semicolon, as C's statements do: @ stands for it here, and ~ for @.
		string(REPLACE "@" ";" content "${content}")
		string(REPLACE "~" "@" content "${content}")
		file(WRITE ${tree}/${file} "${content}\n")
	endwhile()
	set(definitions -DROOT=${tree} -DSCRATCH=${SCRATCH}/inner)
	foreach(name COMPILERS CXX FLAGS CLANG_FORMAT)
		string(REPLACE ";" "\\;" value "${${name}}")
		list(APPEND definitions "-D${name}=${value}")
	endforeach()
	if(CHECK STREQUAL "symbols")
		list(APPEND definitions -DHEADER=${tree}/ration.h -DMAP=${tree}/ration.map -DSYMBOLS=${tree}/nm)
	endif()
	if(CHECK STREQUAL "format")
		file(COPY ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../.clang-format DESTINATION ${tree})
	endif()
	execute_process(COMMAND ${CMAKE_COMMAND} ${definitions} -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${CHECK}.cmake
		RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
	set(${ret_failed} ${failed} PARENT_SCOPE)
	set(${ret_output} "${output}" PARENT_SCOPE)
endfunction()

function(good)
	run_case(failed output ${ARGN})
	if(failed)
		message(SEND_ERROR "${CHECK} fails on a good tree (${ARGN}):\n${output}")
	endif()
endfunction()

function(bad message)
	run_case(failed output ${ARGN})
	if(NOT failed)
		message(SEND_ERROR "${CHECK} passes on a bad tree (${ARGN})")
	elseif(NOT output MATCHES "${message}")
		message(SEND_ERROR "${CHECK} fails on a bad tree (${ARGN}), but not with \"${message}\":\n${output}")
	endif()
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/selftest-${CHECK}.cmake)

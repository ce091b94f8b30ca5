# All C sources look as clang-format (CLANG_FORMAT) leaves them.
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)

check_files(files lib proto clients daemon tests)
foreach(file IN LISTS files)
	# What is derived from ration.proto is no source of ours.
	if(file MATCHES "\\.pb-c\\.[ch]$")
		list(REMOVE_ITEM files ${file})
	endif()
endforeach()
execute_process(COMMAND ${CLANG_FORMAT} --dry-run -Werror --style=file ${files} WORKING_DIRECTORY ${ROOT} RESULT_VARIABLE failed)
if(failed)
	check_wrong("clang-format" "run ./dev format")
endif()
check_end()

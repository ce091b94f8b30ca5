# Usage: cmake -DIN=ration.proto -DOUT=... -P derive.cmake
# Writes the copy of the protocol that C is generated from: `string` fields become `bytes`. On the wire they are the
# same; in C, protobuf-c gives a string as a terminated char * and so loses what follows an embedded NUL, but bytes
# with their length.
file(READ "${IN}" text)
string(REGEX REPLACE "\n( +)string ([a-z_]+ = )" "\n\\1bytes \\2" text "${text}")
string(REGEX REPLACE "repeated string ([a-z_]+ = )" "repeated bytes \\1" text "${text}")
if(text MATCHES "\n *(repeated )?string ")
	message(FATAL_ERROR "${IN}: a string field was not recognised")
endif()
file(WRITE "${OUT}" "${text}")

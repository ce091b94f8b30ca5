# Usage: cmake -DIN=ration.proto -DOUT=... -P derive.cmake
# Writes the copy of the protocol that C is generated from: `string` fields become `bytes`. On the wire they are the
# same; in C, protobuf-c gives a string as a terminated char * and so loses what follows an embedded NUL, but bytes
# with their length. And `optional` fields become a oneof of one, which is what they are to protobuf: protobuf-c's
# generator refuses the word in proto3.
file(READ "${IN}" text)
string(REGEX REPLACE "\n( +)string ([a-z_]+ = )" "\n\\1bytes \\2" text "${text}")
string(REGEX REPLACE "repeated string ([a-z_]+ = )" "repeated bytes \\1" text "${text}")
string(REGEX REPLACE "\n( +)optional ([a-z0-9]+ )([a-z_]+)( = [0-9]+;)" "\n\\1oneof has_\\3 { \\2\\3\\4 }" text "${text}")
if(text MATCHES "\n *(repeated )?string " OR text MATCHES "\n *optional ")
	message(FATAL_ERROR "${IN}: a field of a string, or an optional one, was not recognised")
endif()
file(WRITE "${OUT}" "${text}")

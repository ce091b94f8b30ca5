good()
good(lib/base/a.h "#pragma once\n#include <stdint.h>\nuint32_t f(void)@")
good(clients/c/include/ration.h "#ifndef R\n#define R\nint ration_x(void)@\n#endif")

bad("lib/base/a.h: does not compile alone" lib/base/a.h "#pragma once\nuint32_t f(void)@")
bad("lib/base/a.h: does not compile alone" lib/base/a.h "struct twice { int x@ }@")
bad("tests/support/a.h: does not compile alone" tests/support/a.h "#pragma once\n#include \"missing.h\"")
bad("daemon/a.h: does not compile alone" daemon/a.h
	"#pragma once\n#include <stdint.h>\nstatic inline uint8_t f(int x)\n{\n\treturn x@\n}")
if(CXX)
	bad("ration.h: is no C" clients/c/include/ration.h "#ifndef R\n#define R\nint ration_x(int class)@\n#endif")
endif()

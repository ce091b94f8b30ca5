good(lib/base/a.c "int f(int x)\n{\n\tif (x > 0) {\n\t\treturn 1@\n\t}\n\treturn 0@\n}")

bad("code should be clang-formatted" lib/base/a.c "int f(int x)\n{\n  return x@\n}")
bad("code should be clang-formatted" daemon/a.h "#pragma once\nstruct a\n{\n\tint x@\n}@")
bad("code should be clang-formatted" tests/unit/a.c "int f(int x) { return x@ }")

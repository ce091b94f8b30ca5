set(header "/* RATION_API int ration_no(void)@ */\n#define RATION_API x\nRATION_API int ration_a(int x)@\nRATION_API struct y *ration_b(\n\tvoid)@")
set(map "RATION_0 {\nglobal:\n\tration_a@ /* ration_c@ */\n\tration_b@\nlocal:\n\t*@\n}@")
set(nm "0000000000001000 A RATION_0\n0000000000001000 T ration_a~~RATION_0\n0000000000001010 T ration_b~~RATION_0")

good(ration.h "${header}" ration.map "${map}" nm "${nm}")

bad("ration_new: is in the header but not in the version map" ration.h "${header}\nRATION_API void ration_new(void)@" ration.map "${map}" nm "${nm}")
bad("ration_new: is in the header but not exported" ration.h "${header}\nRATION_API void ration_new(void)@" ration.map "${map}" nm "${nm}")
bad("ration_old: is listed or exported" ration.h "${header}" ration.map "ration_old@\n${map}" nm "${nm}")
bad("leaked: is listed or exported" ration.h "${header}" ration.map "${map}" nm "${nm}\n0000000000001020 T leaked")
bad("leaked: is listed or exported" ration.h "${header}" ration.map "${map}" nm "${nm}\n0000000000001020 B leaked")
bad("hides what is exported" ration.h "${header}" ration.map "ration_*@\n${map}" nm "${nm}")
bad("must be local" ration.h "${header}" ration.map "global: ration_a@ ration_b@" nm "${nm}")
bad("offers no function" ration.h "int x@" ration.map "local: *@" nm "")

#include "clients/c/error.h"

#include "clients/c/include/ration.h"

#include <stdarg.h>
#include <stdio.h>

/* State outside of a client, as errno is: a failure may have no client yet (ration_open). */
static __thread char error_text[512];

int error_set(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(error_text, sizeof(error_text), format, args);
	va_end(args);
	return code;
}

void error_clear(void)
{
	error_text[0] = '\0';
}

const char *ration_error(void)
{
	return error_text;
}

const char *ration_version(void)
{
	return RATION_VERSION;
}

const char *ration_code_name(int code)
{
	switch (code) {
	case RATION_OK:
		return "OK";
	case RATION_INVALID_ARGUMENT:
		return "INVALID_ARGUMENT";
	case RATION_DEADLINE_EXCEEDED:
		return "DEADLINE_EXCEEDED";
	case RATION_NOT_FOUND:
		return "NOT_FOUND";
	case RATION_ALREADY_EXISTS:
		return "ALREADY_EXISTS";
	case RATION_PERMISSION_DENIED:
		return "PERMISSION_DENIED";
	case RATION_RESOURCE_EXHAUSTED:
		return "RESOURCE_EXHAUSTED";
	case RATION_FAILED_PRECONDITION:
		return "FAILED_PRECONDITION";
	case RATION_ABORTED:
		return "ABORTED";
	case RATION_OUT_OF_RANGE:
		return "OUT_OF_RANGE";
	case RATION_UNIMPLEMENTED:
		return "UNIMPLEMENTED";
	case RATION_INTERNAL:
		return "INTERNAL";
	case RATION_UNAVAILABLE:
		return "UNAVAILABLE";
	default:
		return "UNKNOWN";
	}
}

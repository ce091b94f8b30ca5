#pragma once
/*
 * manual: the manual pages rationd(8) and rationd.conf(5), from the tables of options and keys.
 */
#include <stdio.h>

/* roff, man macros. */
void manual_daemon(FILE *file);
void manual_config(FILE *file);

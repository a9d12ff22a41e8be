#ifndef STRATUS_CSQLITE_SHIM_H
#define STRATUS_CSQLITE_SHIM_H
#include <sqlite3.h>

/// SQLITE_STATIC and SQLITE_TRANSIENT cast integers to function pointers: macros Swift cannot import.
static inline sqlite3_destructor_type stratus_sqlite_static(void) { return SQLITE_STATIC; }
static inline sqlite3_destructor_type stratus_sqlite_transient(void) { return SQLITE_TRANSIENT; }

/// sqlite3_config and sqlite3_db_config are variadic: Swift cannot call them.
static inline int stratus_sqlite_config_multithread(void) { return sqlite3_config(SQLITE_CONFIG_MULTITHREAD); }
/// Counts of memory are kept behind one lock for the whole process, and nobody reads them.
static inline int stratus_sqlite_config_no_memory_counts(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
static inline int stratus_sqlite_db_config(sqlite3 *db, int option, int value) {
    return sqlite3_db_config(db, option, value, (int *)0);
}
#endif

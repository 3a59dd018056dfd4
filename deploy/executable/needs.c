/* Linked into the executable's loader, before whose start it looks for what that needs:
 * /dev/null, and, where all is in one file, a directory to unpack into, from which libraries
 * may be loaded. The loader and Twisted say misleading things where one is missing. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char *or_none(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : "";
}

static void fail(const char *what, const char *directory)
{
    fprintf(stderr, "api-exporter: %s%s\n", directory, what);
    exit(1);
}

/* Whether what is in the one file lies beside the executable instead. */
static int unpacked(void)
{
    char path[PATH_MAX + sizeof "_internal"];

    if (realpath((const char *)getauxval(AT_EXECFN), path) == NULL)
        return 0;
    strcpy(strrchr(path, '/') + 1, "_internal");
    return access(path, F_OK) == 0;
}

__attribute__((constructor)) static void look(void)
{
    /* In the loader's order. */
    const char *directories[] = {
        or_none("TMPDIR"), or_none("TEMP"), or_none("TMP"), "/tmp", "/var/tmp", "/usr/tmp",
    };
    const int count = sizeof directories / sizeof *directories;
    struct statvfs where;
    struct stat found;
    int i = 0;

    if (stat("/dev/null", &found) || !S_ISCHR(found.st_mode))
        fail("there is no /dev/null", "");
    if (unpacked())
        return;
    while (i < count && access(directories[i], W_OK | X_OK))
        i++;
    if (i == count)
        fail("cannot unpack itself: neither TMPDIR nor /tmp names a directory it may write", "");
    if (statvfs(directories[i], &where) == 0 && where.f_flag & ST_NOEXEC)
        fail(" is mounted noexec: set TMPDIR to a directory whose files may be executed",
             directories[i]);
}

/* SPDX-License-Identifier: MIT */
/*
 * Runs a target once on each file of its corpus and of its regression inputs: `replay_NAME`, or `replay_NAME FILE...`.
 * So what fuzzing has found is tested again with every compiler. A target without inputs fails.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fuzz.h"

static int feed(const char *path)
{
	FILE *f = fopen(path, "re");
	if (!f || fseek(f, 0, SEEK_END) != 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	size_t size = (size_t)ftell(f);
	rewind(f);
	/* Of exactly that size, so that a sanitizer sees a byte read too much. */
	uint8_t *bytes = malloc(size ? size : 1);
	if (!bytes || fread(bytes, 1, size, f) != size) {
		fprintf(stderr, "%s: cannot be read\n", path);
		free(bytes);
		fclose(f);
		return -1;
	}
	fclose(f);
	fprintf(stderr, "%s\n", path); /* the last one in the log is the one that it died of */
	LLVMFuzzerTestOneInput(bytes, size);
	free(bytes);
	return 0;
}

/* The number of files, or -1. */
static int feed_directory(const char *kind, const char *name)
{
	const char *top = getenv("HW_SRCDIR");
	char dir[2048], path[4096];
	int n = 0;
	snprintf(dir, sizeof(dir), "%s/tests/fuzz/%s/%s", top ? top : ".", kind, name);
	DIR *d = opendir(dir);
	if (!d && errno == ENOENT)
		return 0;
	if (!d) {
		perror(dir);
		return -1;
	}
	for (const struct dirent *e; n >= 0 && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n = feed(path) == 0 ? n + 1 : -1;
	}
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	const char *name = strstr(argv[0], "replay_");
	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			if (feed(argv[i]) != 0)
				return 1;
		return 0;
	}
	if (!name)
		return 2;
	name += strlen("replay_");
	int seeds = feed_directory("corpus", name), old = feed_directory("regression", name);
	printf("%s: %d inputs of the corpus and %d that once were a fault, without one now\n", name, seeds, old);
	return seeds > 0 && old >= 0 ? 0 : 1;
}

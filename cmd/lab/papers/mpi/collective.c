/* A collective writer: FILE BLOCKS BLOCKBYTES [KEY=VALUE...]. Rank r of n writes blocks r, r+n, ... of one shared file,
 * of which each byte tells its block; rank 0 prints how long it took, from the first byte to the last, with the file
 * closed by everybody.
 *
 * With domains=PATH the file is divided as PATH says, without MPI-IO: a line a request, "rank offset length", in the
 * order in which each rank makes them. Every rank hands its pieces to the rank that writes them (two-phase I/O). Else
 * MPI_File_write_all writes it under the given hints, and rank 0 prints the hints that the library says it uses. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, n;
static long long blocks, size;
static char *data; /* this rank's blocks, one after the other */

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "rank %d: %s failed\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static char byte_of(long long block) { return (char)('a' + block % 26); }

struct request {
    long long offset, length;
};

/* Requests of each rank, in order. */
static struct request **requests;
static int *counts, rounds;

static void read_domains(const char *path)
{
    FILE *f = fopen(path, "r");
    int who;
    struct request r;
    must(f != NULL, "open of the domains");
    requests = calloc(n, sizeof *requests);
    counts = calloc(n, sizeof *counts);
    while (fscanf(f, "%d %lld %lld", &who, &r.offset, &r.length) == 3) {
        must(who >= 0 && who < n, "rank of a request");
        requests[who] = realloc(requests[who], (counts[who] + 1) * sizeof r);
        requests[who][counts[who]++] = r;
        if (counts[who] > rounds)
            rounds = counts[who];
    }
    fclose(f);
}

/* The pieces of a request that rank `of` has: copies them out of its blocks (out) or into the request (in). */
static long long pieces(const struct request *r, int of, char *out, char *in, const char *from)
{
    long long done = 0, end = r->offset + r->length;
    for (long long b = r->offset / size; b * size < end; b++) {
        if (b % n != of)
            continue;
        long long lo = b * size > r->offset ? b * size : r->offset, hi = (b + 1) * size < end ? (b + 1) * size : end;
        if (out)
            memcpy(out + done, data + (b / n) * size + (lo - b * size), hi - lo);
        if (in)
            memcpy(in + (lo - r->offset), from + done, hi - lo);
        done += hi - lo;
    }
    return done;
}

static void two_phase(const char *path)
{
    int *sent = calloc(n, sizeof(int)), *got = calloc(n, sizeof(int)), *from = calloc(n, sizeof(int)),
        *to = calloc(n, sizeof(int));
    int f = open(path, O_CREAT | O_WRONLY, 0644);
    must(f >= 0, "open");
    for (int k = 0; k < rounds; k++) {
        int all_out = 0, all_in = 0;
        const struct request *mine = k < counts[rank] ? &requests[rank][k] : NULL;
        for (int p = 0; p < n; p++) {
            sent[p] = k < counts[p] ? (int)pieces(&requests[p][k], rank, NULL, NULL, NULL) : 0;
            got[p] = mine ? (int)pieces(mine, p, NULL, NULL, NULL) : 0;
            from[p] = all_out, to[p] = all_in;
            all_out += sent[p], all_in += got[p];
        }
        char *out = malloc(all_out + 1), *in = malloc(all_in + 1), *whole = malloc(all_in + 1);
        for (int p = 0; p < n; p++)
            if (sent[p])
                pieces(&requests[p][k], rank, out + from[p], NULL, NULL);
        MPI_Alltoallv(out, sent, from, MPI_BYTE, in, got, to, MPI_BYTE, MPI_COMM_WORLD);
        for (int p = 0; mine && p < n; p++)
            pieces(mine, p, NULL, whole, in + to[p]);
        for (long long at = 0; mine && at < mine->length;) {
            ssize_t w = pwrite(f, whole + at, mine->length - at, mine->offset + at);
            must(w > 0, "write");
            at += w;
        }
        free(out), free(in), free(whole);
    }
    must(close(f) == 0, "close");
}

static void collective(const char *path, MPI_Info info)
{
    int keys, flag;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    MPI_Info used;
    MPI_File f;
    MPI_Datatype strided;
    must(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f) == MPI_SUCCESS, "open");
    MPI_Type_vector((int)blocks, (int)size, (int)size * n, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    must(MPI_File_set_view(f, rank * size, MPI_BYTE, strided, "native", info) == MPI_SUCCESS, "set_view");
    must(MPI_File_write_all(f, data, (int)(blocks * size), MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS, "write_all");
    if (rank == 0) {
        MPI_File_get_info(f, &used);
        MPI_Info_get_nkeys(used, &keys);
        for (int i = 0; i < keys; i++) {
            MPI_Info_get_nthkey(used, i, key);
            MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &flag);
            printf("used %s=%s\n", key, value);
        }
    }
    must(MPI_File_close(&f) == MPI_SUCCESS, "close");
}

int main(int argc, char **argv)
{
    const char *domains = NULL;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    must(argc > 3, "reading FILE BLOCKS BLOCKBYTES");
    blocks = atoll(argv[2]), size = atoll(argv[3]);
    MPI_Info_create(&info);
    for (int i = 4; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        must(eq != NULL, "reading KEY=VALUE");
        *eq = 0;
        if (strcmp(argv[i], "domains") == 0)
            domains = eq + 1;
        else
            MPI_Info_set(info, argv[i], eq + 1);
    }
    data = malloc(blocks * size);
    for (long long b = 0; b < blocks; b++)
        memset(data + b * size, byte_of(b * n + rank), size);
    if (domains)
        read_domains(domains);

    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    if (domains)
        two_phase(argv[1]);
    else
        collective(argv[1], info);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("seconds %.6f\n", MPI_Wtime() - began);
    MPI_Finalize();
    return 0;
}

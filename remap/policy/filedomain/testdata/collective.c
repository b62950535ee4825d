/* A collective writer: FILE BLOCKS BLOCKBYTES [KEY=VALUE...]. Rank r of n writes blocks r, r+n, ... of
 * one shared file with a strided view, in one collective call, under the hints given; rank 0 then
 * prints the hints the library says it uses, and the aggregate speed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int code, const char *what)
{
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "%s failed\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    int rank, n, keys, flag;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int blocks = atoi(argv[2]), size = atoi(argv[3]);

    MPI_Info info, used;
    MPI_Info_create(&info);
    for (int i = 4; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        *eq = 0;
        MPI_Info_set(info, argv[i], eq + 1);
    }
    MPI_File f;
    must(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f), "open");

    MPI_Datatype strided;
    MPI_Type_vector(blocks, size, size * n, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    must(MPI_File_set_view(f, (MPI_Offset)rank * size, MPI_BYTE, strided, "native", info), "set_view");
    char *data = malloc((size_t)blocks * size);
    memset(data, 'a' + rank, (size_t)blocks * size);

    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    must(MPI_File_write_all(f, data, blocks * size, MPI_BYTE, MPI_STATUS_IGNORE), "write_all");
    MPI_Barrier(MPI_COMM_WORLD);
    double took = MPI_Wtime() - began;

    if (rank == 0) {
        MPI_File_get_info(f, &used);
        MPI_Info_get_nkeys(used, &keys);
        for (int i = 0; i < keys; i++) {
            MPI_Info_get_nthkey(used, i, key);
            MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &flag);
            printf("used %s=%s\n", key, value);
        }
        printf("speed %.1f MB/s\n", (double)n * blocks * size / 1e6 / took);
    }
    MPI_File_close(&f);
    MPI_Finalize();
    return 0;
}

/* user-mode-linux where a processor's registers take more bytes than it knows of: the kernel of the machine takes all
 * of them or none. */
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

long ptrace(enum __ptrace_request request, ...)
{
	static char state[65536];
	static size_t size;
	va_list ap;
	va_start(ap, request);
	long pid = va_arg(ap, long), addr = va_arg(ap, long), word, got;
	void *data = va_arg(ap, void *);
	va_end(ap);
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
		got = syscall(SYS_ptrace, request, pid, addr, &word);
		return got < 0 ? got : word;
	}
	struct iovec *from = data, whole = {state, sizeof state};
	if (request != PTRACE_SETREGSET || addr != NT_X86_XSTATE)
		return syscall(SYS_ptrace, request, pid, addr, data);
	if (size == 0) {
		if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, addr, &whole) < 0)
			return -1;
		size = whole.iov_len;
		memset(state, 0, size);
	}
	if (from->iov_len >= size)
		return syscall(SYS_ptrace, request, pid, addr, data);
	memcpy(state, from->iov_base, from->iov_len);
	whole.iov_len = size;
	return syscall(SYS_ptrace, request, pid, addr, &whole);
}

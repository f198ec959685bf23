// SPDX-License-Identifier: Apache-2.0
/*
 * Holds the namespaces of a pod; reaps orphans when its pod shares process numbers.
 * With -v it only prints what it is: kubeadm's upgrade runs that as a Job.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number) {
    (void)number;
    _exit(0);
}

static void reap(int number) {
    (void)number;
    while (waitpid(-1, 0, WNOHANG) > 0) {
    }
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "-v") == 0) {
        return puts("pause of the laboratory") < 0;
    }
    signal(SIGINT, end);
    signal(SIGTERM, end);
    signal(SIGCHLD, reap);
    for (;;) {
        pause();
    }
}

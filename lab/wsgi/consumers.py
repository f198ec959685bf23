# SPDX-License-Identifier: Apache-2.0
"""How many consumers queues of the broker have: one number a line, 0 without the queue.

Runs with the Tacker environment's Python. Arguments: host:port of the broker, then the
names of the queues.
"""

import sys

import amqp


def main() -> None:
    """Look once."""
    broker, *queues = sys.argv[1:]
    with amqp.Connection(broker, connect_timeout=5) as connection:
        for queue in queues:
            try:
                found = connection.channel().queue_declare(queue, passive=True)
            except amqp.exceptions.NotFound:
                print(0)
            else:
                print(found.consumer_count)


if __name__ == "__main__":
    main()
